"""`calculator`: arithmetic that is exact as long as it can be.

An expression is parsed into Python's syntax tree and only the few nodes below are evaluated; nothing is ever
executed. Integers and decimals are fractions, so 0.1 + 0.2 is 0.3; roots, logarithms and the like fall back
to floating point, and the result says so by `≈`.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar

from pydantic import Field

from moot.nodes.tools.tool import Arguments, Surroundings, ToolFailed

Number = Fraction | float

MAX_CHARS = 500
MAX_DEPTH = 40
"""Operations within operations."""
MAX_BITS = 4096
"""Size of an exact number's numerator and denominator."""
SHOWN_DIGITS = 60

_ARITHMETIC = re.compile(r"[\w\s.,+*/%()-]+", re.ASCII)
_GLUED = re.compile(r"\d(?![eE][+-]?\d)[A-Za-z]")


class CalculatorArguments(Arguments):
    """Of `calculator`."""

    expression: str = Field(
        min_length=1, max_length=MAX_CHARS, description="Arithmetic, such as (1200 - 950) / 1200 * 100."
    )


class Calculator:
    """Works out an expression."""

    name: ClassVar[str] = "calculator"
    about: ClassVar[str] = (
        "Work out arithmetic exactly: + - * / // % ** and parentheses; abs, ceil, cos, exp, factorial, "
        "floor, gcd, ln, log10, log2, max, min, round, sin, sqrt, sum, tan; pi and e."
    )
    arguments: ClassVar[type[Arguments]] = CalculatorArguments
    needs_context: ClassVar[bool] = False

    def run(self, given: CalculatorArguments, around: Surroundings) -> str:
        """Return the expression with its value."""
        return f"{given.expression.strip()} {shown(evaluate(given.expression))}"


def evaluate(expression: str) -> Number:
    """Return the value of an expression.

    Raises:
        ToolFailed: it is no arithmetic, has no value, or is too large.
    """
    if len(expression) > MAX_CHARS:
        raise ToolFailed(f"the expression has more than {MAX_CHARS} characters")
    text = expression.strip().replace("^", "**").replace("×", "*").replace("÷", "/").replace("−", "-")
    # Python's parser would warn of "1if": what it warns of must not reach it.
    if not _ARITHMETIC.fullmatch(text) or _GLUED.search(text):
        raise ToolFailed("this is no arithmetic expression")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolFailed("this is no arithmetic expression") from None
    try:
        return _Evaluation(text).value(tree.body, 0)
    except ZeroDivisionError:
        raise ToolFailed("division by zero") from None
    except (OverflowError, ValueError) as error:
        raise ToolFailed(f"no value: {error}") from None


def shown(value: Number) -> str:
    """Return `= value` for an exact number, `≈ value` for any other."""
    if isinstance(value, float):
        return f"≈ {value:.12g}"
    if value.denominator == 1:
        return _long(str(value.numerator))
    places = _places(value.denominator)
    if places is not None and places <= SHOWN_DIGITS:
        scaled = abs(value.numerator) * 10**places // value.denominator
        digits = str(scaled).rjust(places + 1, "0")
        return _long(f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}")
    fraction = str(value)
    exact = f"= {fraction} " if len(fraction) <= SHOWN_DIGITS else ""
    whole = abs(value.numerator) // value.denominator
    if whole.bit_length() > 1000:
        sign = "-" if value < 0 else ""
        return f"≈ {_scientific(sign + str(whole))}"
    return f"{exact}≈ {float(value):.12g}"


def _long(digits: str) -> str:
    return f"= {digits}" if len(digits) <= SHOWN_DIGITS else f"≈ {_scientific(digits)}"


def _scientific(digits: str) -> str:
    sign, rest = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole = rest.partition(".")[0]
    return f"{sign}{whole[0]}.{whole[1:12]}e+{len(whole) - 1}"


def _places(denominator: int) -> int | None:
    """Return how many decimal places a fraction needs; `None` where they never end."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


class _Evaluation:
    """One expression being worked out."""

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, node: ast.expr, depth: int) -> Number:
        if depth > MAX_DEPTH:
            raise ToolFailed(f"the expression is nested more than {MAX_DEPTH} deep")
        result = self._value(node, depth + 1)
        large = _bits(result) > MAX_BITS if isinstance(result, Fraction) else not math.isfinite(result)
        if large:
            raise ToolFailed("a number on the way is too large")
        return result

    def _value(self, node: ast.expr, depth: int) -> Number:
        match node:
            case ast.Constant():
                return self._literal(node)
            case ast.Name(id=name) if name in _CONSTANTS:
                return _CONSTANTS[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand, depth)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand, depth)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self.value(left, depth), self.value(right, depth))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                return _called(name, [self.value(argument, depth) for argument in arguments])
        raise ToolFailed(f"{ast.get_source_segment(self._text, node)!r} is nothing to calculate with")

    def _literal(self, node: ast.Constant) -> Fraction:
        source = ast.get_source_segment(self._text, node) or ""
        if type(node.value) not in (int, float):
            raise ToolFailed(f"{source[:60]!r} is no number")
        if isinstance(node.value, int):
            return Fraction(node.value)
        exponent = source.lower().partition("e")[2].replace("_", "").lstrip("+-") or "0"
        if len(exponent) > 4 or int(exponent) > MAX_BITS // 4:
            raise ToolFailed(f"{source[:60]!r} is too large or too small")
        return Fraction(source.replace("_", ""))


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        if _bits(base) * abs(exponent.numerator) > MAX_BITS and abs(base) != 1:
            raise ToolFailed("a power on the way is too large")
        return base**exponent.numerator
    return _real(float(base) ** float(exponent))


def _real(value: Any) -> float:
    if not isinstance(value, float) or not math.isfinite(value):
        raise ToolFailed("the result is no real number")
    return value


def _root(value: Number) -> Number:
    if isinstance(value, Fraction) and value >= 0:
        top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
    return math.sqrt(value)


def _rounded(value: Number, places: Number = Fraction(0)) -> Number:
    """Round half away from zero, as people do."""
    count = int(places)
    if abs(count) > 100:
        raise ToolFailed("round to at most 100 places")
    scale = Fraction(10) ** count
    scaled = abs(Fraction(value)) * scale + Fraction(1, 2)
    return Fraction(math.floor(scaled)) / scale * (1 if value >= 0 else -1)


def _whole(value: Number, name: str) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1:
        raise ToolFailed(f"{name} takes whole numbers")
    return value.numerator


def _factorial(value: Number) -> Number:
    if not 0 <= _whole(value, "factorial") <= 400:
        raise ToolFailed("factorial takes 0 to 400")
    return Fraction(math.factorial(int(value)))


def _in_floats(function: Callable[[float], float]) -> Callable[..., Number]:
    return lambda value: _real(function(float(value)))


_CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e}
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda left, right: Fraction(left // right),
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "abs": abs,
    "ceil": lambda value: Fraction(math.ceil(value)),
    "cos": _in_floats(math.cos),
    "exp": _in_floats(math.exp),
    "factorial": _factorial,
    "floor": lambda value: Fraction(math.floor(value)),
    "gcd": lambda *values: Fraction(math.gcd(*(_whole(value, "gcd") for value in values))),
    "ln": _in_floats(math.log),
    "log10": _in_floats(math.log10),
    "log2": _in_floats(math.log2),
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
    "round": _rounded,
    "sin": _in_floats(math.sin),
    "sqrt": _root,
    "sum": lambda *values: sum(values, Fraction(0)),
    "tan": _in_floats(math.tan),
}


def _called(name: str, arguments: list[Number]) -> Number:
    try:
        return _FUNCTIONS[name](*arguments)
    except TypeError:
        raise ToolFailed(f"{name} does not take {len(arguments)} numbers") from None

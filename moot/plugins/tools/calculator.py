"""Exact arithmetic for debaters: the tool `calculator`.

The calculator evaluates the syntax tree of an expression with a fixed set of operators and functions, and
executes no code. Literals become fractions, so 0.1 + 0.2 is 0.3, and the size of intermediate results is
limited. Roots, logarithms and similar functions use floating point. Their results are marked with `≈`.
"""

import ast
import math
import operator
import re
from collections.abc import Callable
from contextlib import suppress
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction

from pydantic import Field

from moot.tools import Tool, ToolContext, ToolFailed

Number = Fraction | float

MAX_CHARS = 500
MAX_DEPTH = 40
"""Maximum nesting depth of an arithmetic expression."""
MAX_BITS = 4096
"""Maximum size of a numerator or denominator during an exact calculation, in bits."""
SHOWN_DIGITS = 60

_ARITHMETIC = re.compile(r"[\w\s.,+*/%()-]+", re.ASCII)
_GLUED = re.compile(r"\d(?![eE][+-]?\d)[A-Za-z]")


class Calculator(Tool):
    """Tool that evaluates an arithmetic expression."""

    name = "calculator"
    description = (
        "Work out arithmetic exactly: + - * / // % ** and parentheses; abs, ceil, cos, exp, factorial, "
        "floor, gcd, ln, log10, log2, max, min, round, sin, sqrt, sum, tan; pi and e."
    )

    expression: str = Field(
        min_length=1,
        max_length=MAX_CHARS,
        description="Arithmetic expression, such as (1200 - 950) / 1200 * 100.",
    )

    def run(self, context: ToolContext) -> str:
        """Evaluate the expression, and return the expression and its value as text."""
        return f"{self.expression.strip()} {value_text(evaluate(self.expression))}"


def evaluate(expression: str) -> Number:
    """Return the value of an arithmetic expression. One without a value is a `ToolFailed`."""
    if len(expression) > MAX_CHARS:
        raise ToolFailed(f"the expression has more than {MAX_CHARS} characters")
    text = expression.strip().replace("^", "**").replace("×", "*").replace("÷", "/").replace("−", "-")
    # Python's parser warns about text such as "1if", so such text is refused before parsing.
    if not _ARITHMETIC.fullmatch(text) or _GLUED.search(text):
        raise ToolFailed("the input is not an arithmetic expression")
    try:
        tree = ast.parse(text, mode="eval").body
        if _depth(tree) > MAX_DEPTH:
            raise ToolFailed(f"the expression has more than {MAX_DEPTH} nested levels")
        return _value(tree, text)
    except ZeroDivisionError:
        raise ToolFailed("division by zero") from None
    except (OverflowError, ValueError) as error:
        raise ToolFailed(f"no value: {error}") from None
    except KeyError as error:
        raise ToolFailed(f"unknown name or operation: {error.args[0]}") from None
    except (SyntaxError, TypeError, RecursionError, MemoryError):
        raise ToolFailed("the input is not an arithmetic expression") from None


def value_text(value: Number) -> str:
    """Format a number with `=` if it is exact or `≈` if it is rounded."""
    if isinstance(value, float):
        return f"≈ {value:.12g}"
    with localcontext(Context(prec=SHOWN_DIGITS, traps=[Inexact])), suppress(Inexact):
        return f"= {Decimal(value.numerator) / Decimal(value.denominator):f}"
    with localcontext(Context(prec=SHOWN_DIGITS)):
        rounded = f"≈ {Decimal(value.numerator) / Decimal(value.denominator):.12g}"
    is_short = value.denominator > 1 and len(str(value)) <= SHOWN_DIGITS
    return f"= {value} {rounded}" if is_short else rounded


def _depth(node: ast.AST) -> int:
    return 1 + max(map(_depth, ast.iter_child_nodes(node)), default=0)


def _literal(source: str) -> Fraction:
    digits, _, exponent = source.lower().replace("_", "").partition("e")
    if len(exponent) > 5 or abs(int(exponent or 0)) > MAX_BITS // 4:
        raise ToolFailed(f"the number {source[:60]!r} is too large or too small")
    return Fraction(digits) * Fraction(10) ** int(exponent or 0)


def _check_number(value: object) -> Number:
    """Return an intermediate result unchanged if it is a number and not too large."""
    if not isinstance(value, Fraction | float):
        raise TypeError("not a number")
    if _bits(value) > MAX_BITS if isinstance(value, Fraction) else not math.isfinite(value):
        raise ToolFailed("an intermediate result is too large: use smaller numbers")
    return value


def _value(node: ast.expr, text: str) -> Number:
    """Evaluate a part of the expression. An unknown name or operator is the key of a `KeyError`."""
    match node:
        case ast.Constant():
            return _check_number(_literal(ast.get_source_segment(text, node) or ""))
        case ast.Name(name):
            return _CONSTANTS[name]
        case ast.UnaryOp(sign, operand):
            return _check_number(_operator(sign)(_value(operand, text)))
        case ast.BinOp(left, sign, right):
            return _check_number(_operator(sign)(_value(left, text), _value(right, text)))
        case ast.Call(ast.Name(name), arguments, []):
            return _check_number(_FUNCTIONS[name](*(_value(each, text) for each in arguments)))
    raise KeyError(type(node).__name__)


def _operator(sign: ast.AST) -> Callable[..., Number]:
    if (function := _OPERATORS.get(type(sign))) is None:
        raise KeyError(type(sign).__name__)
    return function


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        if _bits(base) * abs(exponent.numerator) > MAX_BITS and abs(base) != 1:
            raise ToolFailed("a power in the expression is too large: use smaller numbers")
        return Fraction(base**exponent.numerator)
    return math.pow(base, exponent)


def _root(value: Number) -> Number:
    if isinstance(value, Fraction) and value >= 0:
        top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
    return math.sqrt(value)


def _round(value: Number, places: Number = Fraction(0)) -> Number:
    """Round a number to `places` decimal places. Ties are rounded away from zero."""
    count = int(places)
    if abs(count) > 100:
        raise ToolFailed("`round` accepts at most 100 decimal places: use fewer")
    scale = Fraction(10) ** count
    scaled = abs(Fraction(value)) * scale + Fraction(1, 2)
    return Fraction(math.floor(scaled)) / scale * (1 if value >= 0 else -1)


def _whole(value: Number) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1:
        raise ToolFailed("factorial and gcd accept only whole numbers")
    return value.numerator


def _factorial(value: Number) -> Number:
    if not 0 <= _whole(value) <= 400:
        raise ToolFailed("factorial accepts only whole numbers from 0 to 400")
    return Fraction(math.factorial(_whole(value)))


def _exact(function: Callable[..., int]) -> Callable[..., Number]:
    return lambda *values: Fraction(function(*values))


_OPERATORS: dict[type[ast.AST], Callable[..., Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: _exact(operator.floordiv),
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_CONSTANTS = {"pi": math.pi, "e": math.e}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "abs": abs,
    "ceil": _exact(math.ceil),
    "cos": math.cos,
    "exp": math.exp,
    "factorial": _factorial,
    "floor": _exact(math.floor),
    "gcd": lambda *values: Fraction(math.gcd(*map(_whole, values))),
    "ln": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
    "round": _round,
    "sin": math.sin,
    "sqrt": _root,
    "sum": lambda *values: sum(values, Fraction(0)),
    "tan": math.tan,
}

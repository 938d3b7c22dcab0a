"""Operations on stored debates, such as start, resume, fork, judge, replay and estimate."""

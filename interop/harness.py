"""Defines and runs checks: a check is a function whose name is a sentence."""

import os
import time
import traceback

CHECKS = []


def check(function):
    """Marks a function as a check; checks run in the order of their definition."""
    CHECKS.append(function)
    return function


class Failed(AssertionError):
    """An expectation was not met."""


def expect(condition, message):
    if not condition:
        raise Failed(message)


def expect_in(part, text):
    expect(part in text, f"expected {part!r} in:\n{text}")


def expect_equal(actual, expected, what=""):
    expect(actual == expected, f"{what + ': ' if what else ''}expected {expected!r}, not {actual!r}")


def eventually(condition, what, seconds=30):
    """Polls until the condition is true, and returns its value."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        expect(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(0.05)


def run_checks(suite, argument):
    """Runs every check with `argument(name of the check)`, one line each, and returns the program's exit code.

    With INTEROP_ONLY set, runs only those whose sentence contains it."""
    failed = 0
    only = os.environ.get("INTEROP_ONLY", "")
    for function in CHECKS:
        sentence = function.__name__.replace("_", " ")
        if only not in sentence:
            continue
        start = time.monotonic()
        problem = attempt(function, argument, function.__name__)
        if problem:
            # Third-party programs have races of their own: a failed check is shown, and retried once.
            print(f"AGAIN {suite}: {sentence}\n{indented(problem)}", flush=True)
            problem = attempt(function, argument, "again_" + function.__name__)
        if problem:
            failed += 1
            print(f"FAIL  {suite}: {sentence}\n{indented(problem)}", flush=True)
        else:
            print(f"ok    {suite}: {sentence} ({time.monotonic() - start:.1f} s)", flush=True)
    return 1 if failed else 0


def attempt(function, argument, name):
    """Runs a check; returns the error, or None."""
    try:
        function(argument(name))
        return ""
    except Failed as problem:
        return str(problem)
    except Exception:  # pylint: disable=broad-except
        return traceback.format_exc()


def indented(text):
    return "\n".join("      " + line for line in text.splitlines())

"""JSON Lines as reports and traces have them: one object a line, errors with file and line."""

import json


class FormatError(ValueError):
    """Not what the suite writes, or cut off; the message begins with FILE:LINE."""


def read(path):
    """[(line number, object)] of a file, without empty lines."""
    rows = []
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise FormatError(f"{path}:{number}: this line is no JSON object")
                rows.append((number, row))
    except json.JSONDecodeError as error:
        raise FormatError(f"{path}:{number}: {error}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: {error}") from error
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from error
    if not rows:
        raise FormatError(f"{path}: it is empty")
    return rows


def need(path, number, row, *keys):
    """The values of keys that a row must have."""
    missing = [key for key in keys if key not in row]
    if missing:
        raise FormatError(f"{path}:{number}: this line lacks {', '.join(missing)}")
    return [row[key] for key in keys]

"""Does something lie where nothing belongs? The folders of a checkout are the packages that README.md lists."""

_FOLDERS = {"ci", "conformance", "fixtures", "property_tests", "reference"}


def problems(sources):
    """(key, message) for each file outside of them; dot-files and the files of the top itself may be there."""
    for file in sources.files:
        top, slash, _ = file.partition("/")
        if slash and not top.startswith(".") and top not in _FOLDERS:
            yield file, f"{file} lies in {top}/: use {', '.join(sorted(_FOLDERS))}"

"""The errors of the library."""

from calque import errors


def test_errors_are_types_as_in_jax() -> None:
    for name in (
        "ConcretizationTypeError",
        "TracerArrayConversionError",
        "TracerIntegerConversionError",
        "UnexpectedTracerError",
        "KeyReuseError",
    ):
        assert issubclass(getattr(errors, name), errors.JAXTypeError) and issubclass(
            getattr(errors, name), TypeError
        )
    assert issubclass(errors.NonConcreteBooleanIndexError, errors.JAXIndexError)

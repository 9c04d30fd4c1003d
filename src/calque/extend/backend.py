"""What runs programs, by the names of platforms: as libraries ask before they begin."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from calque.core.backends import known
from calque.core.devices import Client, Device, all_devices
from calque.machine.caches import WeakTable
from calque.transforms.jit.decorator import clear_caches, forgetting

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache",
    "get_backend", "get_compile_options", "get_default_device", "register_backend_cache",
    "register_backend_factory",
]  # fmt: skip

_caches: Final[WeakTable[Any, str]] = WeakTable("caches of libraries")


def backends() -> dict[str, Any]:
    """Gives what runs programs, by the name of its platform.

    Returns:
        A dict: the processor's, and that of the platform that is used when nothing is said.

    >>> from calque import extend
    >>> sorted(extend.backend.backends())
    ['cpu']"""
    found: dict[str, Any] = {"cpu": all_devices()[0].client}
    home = known.default_devices()[0]
    found.setdefault("xla_cpu" if home.engine == "xla_cpu" else home.platform, home.client)
    return found


def get_backend(platform: Any = None) -> Any:
    """Gives what runs programs on a platform.

    Args:
        platform: The name of the platform; None takes the one that is used when nothing is said.
            What an earlier call gave is given back.

    Returns:
        Its client: `platform`, `platform_version`, `devices()`, `device_count()`.

    >>> from calque import extend
    >>> extend.backend.get_backend().platform
    'cpu'"""
    if platform is not None and not isinstance(platform, str):
        return platform
    devices = known.default_devices() if platform is None else _devices_of(platform)
    return devices[0].client


def _devices_of(platform: str) -> Any:
    return all_devices() if platform == "cpu" else known.devices_of(platform)


def backend_xla_version(platform: Any = None) -> int | None:
    """Gives the version of XLA that runs programs on a platform.

    Args:
        platform: The name of the platform, as of `get_backend`.

    Returns:
        A number, or None where XLA does not run them.

    >>> from calque import extend
    >>> extend.backend.backend_xla_version() is None
    True"""
    client = get_backend(platform)
    return None if isinstance(client, Client) else getattr(client, "xla_version", None)


def get_default_device() -> Device:
    """Gives the device of values that are placed nowhere.

    Returns:
        A Device.

    >>> from calque import extend
    >>> extend.backend.get_default_device() in jax.devices()
    True"""
    device: Device = known.home()
    return device


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Empties a cache of a library when `clear_caches` empties calque's.

    Args:
        cache: What has a method `cache_clear`, such as a function with `functools.lru_cache`.
        for_what: What it is used for.

    Returns:
        None.

    >>> import functools
    >>> from calque import extend
    >>> extend.backend.register_backend_cache(functools.lru_cache(abs), "sizes")"""
    if not callable(getattr(cache, "cache_clear", None)):
        raise TypeError(f"register_backend_cache: a cache has `cache_clear`, got {cache!r}")
    _caches[cache] = for_what


def clear_backends() -> None:
    """Forgets every traced and compiled program, as `clear_caches`. Devices and arrays stay.

    Returns:
        None.

    >>> from calque import extend
    >>> extend.backend.clear_backends()"""
    clear_caches()


def clear_in_memory_compilation_cache() -> None:
    """Forgets every traced and compiled program.

    Returns:
        None.

    >>> from calque import extend
    >>> extend.backend.clear_in_memory_compilation_cache()"""
    clear_caches()


def get_compile_options(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: options of XLA's compiler are objects of jaxlib.

    Args:
        *args: Not looked at.
        **kwargs: Not looked at.

    Raises:
        NotImplementedError: Always.

    >>> from calque import extend
    >>> extend.backend.get_compile_options(1, 1)
    Traceback (most recent call last):
    NotImplementedError: ..."""
    raise NotImplementedError(
        "extend.backend.get_compile_options: options of XLA's compiler are objects of jaxlib; give"
        " calque.jit its compiler_options, a dict by name"
    )


def register_backend_factory(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: what runs programs is an engine of calque, or a plugin of XLA.

    Args:
        name: The name of the platform.
        *args: Not looked at.
        **kwargs: Not looked at.

    Raises:
        NotImplementedError: Always.

    >>> from calque import extend
    >>> extend.backend.register_backend_factory("mine", list)
    Traceback (most recent call last):
    NotImplementedError: ..."""
    raise NotImplementedError(
        f"extend.backend.register_backend_factory: a client made in Python cannot run {name!r}; a"
        " plugin of XLA is found by its package or by PJRT_NAMES_AND_LIBRARY_PATHS"
    )


def _clear_caches_of_libraries() -> None:
    for cache in list(_caches):
        cache.cache_clear()


forgetting.add(_clear_caches_of_libraries)

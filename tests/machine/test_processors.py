"""How many processors there are for this process, as the system tells it."""

from pathlib import Path

import pytest

from calque.machine import processors


def test_control_groups_are_obeyed(tmp_path: Path) -> None:
    def cpus(membership: str, **files: str) -> float:
        for name in ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"):
            for path in tmp_path.rglob(name):
                path.unlink()
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_max", ".max").replace(
                "cpu_cfs", "cpu.cfs"
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "membership").write_text(membership)
        return processors._cgroup_cpus(str(tmp_path), str(tmp_path / "membership"))

    assert cpus("0::/\n") == 0.0
    assert cpus("0::/\n", cpu_max="150000 100000\n") == 1.5
    assert cpus("0::/a/b\n", a__cpu_max="200000 100000", a__b__cpu_max="max 100000") == 2.0
    assert cpus("0::/a/b\n", a__cpu_max="200000 100000", a__b__cpu_max="50000 100000") == 0.5
    assert (
        cpus(
            "4:cpu,cpuacct:/x\n",
            cpu__x__cpu_cfs_quota_us="300000",
            cpu__x__cpu_cfs_period_us="100000",
        )
        == 3.0
    )
    assert (
        cpus("4:cpu:/x\n", cpu__x__cpu_cfs_quota_us="-1", cpu__x__cpu_cfs_period_us="100000") == 0.0
    )


def test_the_environment_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALQUE_NUM_THREADS", raising=False)
    assert processors.wanted_threads() == processors.available_cpus() >= 1
    monkeypatch.setenv("CALQUE_NUM_THREADS", " 7 ")
    assert processors.wanted_threads() == 7
    monkeypatch.setenv("CALQUE_NUM_THREADS", "0")
    with pytest.raises(ValueError, match="a whole number from 1 to 256, not '0'"):
        processors.wanted_threads()

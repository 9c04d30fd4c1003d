"""Marks for profilers."""

import calque
import calque.numpy as jnp


def test_marks_for_profilers():
    with calque.profiler.StepTraceAnnotation("train", step_num=3) as mark:
        names = [e.source_info.name_stack for e in calque.make_jaxpr(jnp.sin)(1.0).eqns]
    assert names == ["train"] and mark.metadata == {"step_num": 3}
    assert calque.export.default_export_platform() == "cpu" and not calque.export.is_symbolic_dim(3)

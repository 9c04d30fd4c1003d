"""Tests that say what only calque's own engine does, by reason: left out where another engine is
chosen (CALQUE_PLATFORMS=xla_cpu)."""

from typing import Final

_MACHINE_CODE: Final = "counts what machine code serves: XLA's programs are called from Python"
_STEPS: Final = "looks at the steps and kernels of calque's own programs"
_NAMES: Final = "names calque's own devices"
_DENORMAL: Final = "denormal numbers: XLA takes them for zero"
_SIZES: Final = "counts what one program for all sizes saves: XLA compiles each size"
_TAKEN: Final = "memory of the host that is donated: XLA reads it where it is and never writes it"
_WAITS: Final = "XLA gives an argument away when the runs that read it are done"
_KEPT: Final = "XLA keeps the arguments of the last call that failed"
_SUMMED: Final = "arrays that are still to be added up are whole on each device of XLA, as the sum"
_ENGINE: Final = "asks for programs of calque's own engine"
_FORKS: Final = "a forked child has none of XLA's threads: a warning says so where it forks"
_AWAITED: Final = "a call of XLA does not wait: that memory is out is raised where it is awaited"
_ACCURACY: Final = "bounds the errors of calque's own functions: XLA's are its own"
_RULES: Final = "a rule for MLIR, which calque's own engine only keeps, is what XLA runs"
_COUNTS: Final = "XLA's CPU does not count its memory, in JAX neither"
_PRINTED: Final = "prints devices, steps and figures of calque's own engine"
_INTERRUPTS: Final = "a call of XLA does not wait, and its run is not interrupted, in JAX neither"
_SERVED: Final = "calque is served as jax first, before a program of XLA brings jaxlib in"
_SAID: Final = "names a foreign function that fails: XLA gives the function's message alone"
_OPENED: Final = "XLA's CPU keeps the devices that it was opened with"
_IMPORTS: Final = "says what calque imports without jaxlib"
_BITS: Final = "compares floats with eager results bit by bit: XLA's functions are its own"
_FOUND: Final = "finds a size over several devices, whose programs have fixed sizes on XLA"

EXCEPTIONS: Final = {
    "tests/extend/test_backend.py::test_the_processor_is_a_backend": _NAMES,
    "tests/extend/test_own.py::test_rules_for_mlir_are_kept_for_xla": _RULES,
    "tests/test_accuracy.py::test_real_numbers": _ACCURACY,
    "tests/test_bad_input.py::test_odd_arrays[special]": _DENORMAL,
    "tests/test_bad_input.py::test_the_process_survives[bad calls after a fork]": _FORKS,
    "tests/test_bad_input.py::test_the_process_survives[much memory, in every way]": _AWAITED,
    "tests/test_device_functions.py::test_counts_agree": _NAMES,
    "tests/test_device_functions.py::test_other_platforms_are_not_there[devices]": _NAMES,
    "tests/test_processes.py::test_fork": _FORKS,
    "tests/test_profiler.py::test_a_trace_is_written_when_it_is_stopped": _STEPS,
    "tests/test_profiler.py::test_memory_statistics": _COUNTS,
    "tests/transforms/functions/test_checks.py::test_programs_without_keys_are_served_by_machine_code": _MACHINE_CODE,  # noqa: E501
    "tests/transforms/functions/test_checks.py::test_eager_indices_are_checked_beside_programs": _MACHINE_CODE,  # noqa: E501
    "tests/transforms/functions/test_nan_checks.py::test_programs_look_at_themselves": _MACHINE_CODE,  # noqa: E501
    "tests/numpy/calls/test_any_size.py::test_products_and_large_sums_have_one_program_for_all_sizes": _BITS,  # noqa: E501
    "tests/numpy/calls/test_operators.py::test_powers_give_the_bits_of_compiled_ones_in_any_order": _BITS,  # noqa: E501
    "tests/numpy/calls/test_operators.py::test_integer_arrays": _BITS,
    "tests/numpy/test_contractions.py::test_products_of_two_dtypes_are_those_in_the_dtype_of_both": _BITS,  # noqa: E501
    "tests/numpy/test_kernels.py": _STEPS,
    "tests/numpy/test_numpy_edges.py::test_as_numpy[spacing of float32]": _DENORMAL,
    "tests/transforms/devices/test_four_devices.py::test_as_jax": _NAMES,
    "tests/transforms/devices/test_sharding.py::test_single_device_shardings": _NAMES,
    "tests/transforms/functions/test_key_reuse.py::test_keys_that_a_jitted_function_captures": _BITS,  # noqa: E501
    "tests/transforms/jit/test_again.py": _STEPS,
    "tests/transforms/jit/test_configurations.py::test_a_program_compiled_under_other_flags_is_not_kept": _BITS,  # noqa: E501
    "tests/transforms/jit/test_donation.py::test_an_update_step_takes_no_memory": _TAKEN,
    "tests/transforms/jit/test_donation.py::test_in_place": _TAKEN,
    "tests/transforms/jit/test_donation.py::test_softmax_of_rows_in_place": _TAKEN,
    "tests/transforms/jit/test_donation.py::test_memory_that_nobody_looks_at_any_more_is_taken": _TAKEN,  # noqa: E501
    "tests/transforms/jit/test_donation.py::test_compiled_ahead": _TAKEN,
    "tests/transforms/jit/test_donation.py::test_a_run_of_another_thread_keeps_its_argument": _WAITS,  # noqa: E501
    "tests/transforms/jit/test_donation.py::test_an_exception_in_the_program_leaves_no_mess": _KEPT,
    "tests/transforms/jit/test_dynamic.py::test_large_sums_keep_their_order": _BITS,
    "tests/transforms/jit/test_releasing.py::test_the_code_of_dropped_functions_is_given_back": _MACHINE_CODE,  # noqa: E501
    "tests/transforms/jit/test_teaching.py::test_a_taught_call_asks_nobody": _MACHINE_CODE,
    "tests/transforms/jit/test_traced.py::test_results_are_where_the_program_says": _ENGINE,
    "tests/transforms/jit/test_traced.py::test_programs_run_on_the_engine_of_their_arguments": _ENGINE,  # noqa: E501
    "tests/experimental/colocated_python/test_places.py::test_cpu_devices_stand_beside_themselves": _NAMES,  # noqa: E501
    "tests/experimental/colocated_python/test_places.py::test_other_devices_need_a_cpu_each": _NAMES,  # noqa: E501
    "tests/interpreters/test_mlir.py::test_lowering_by_a_function": _STEPS,
    "tests/transforms/devices/test_sharding_arrays.py::test_arrays_know_their_parts": _NAMES,
    "tests/transforms/devices/test_sharding_arrays.py::test_values_go_where_others_are": _NAMES,
    "tests/test_devices.py": _NAMES,
    "tests/array_api/test_special_values.py::test_real[hypot-float32-jit]": _DENORMAL,
    "tests/transforms/test_compositions.py::test_jit_that_differs_from_eager_is_found": _BITS,
    "tests/transforms/jit/test_dynamic.py::test_from_large_to_small": _STEPS,
    "tests/transforms/devices/test_summands.py::test_members_keep_what_they_made": _SUMMED,
    "tests/transforms/devices/test_summands.py::test_linear_operations_are_done_to_each_summand": _SUMMED,  # noqa: E501
    "tests/transforms/devices/test_summands.py::test_sums_over_split_dimensions_leave_each_member_its_part": _SUMMED,  # noqa: E501
    "tests/transforms/devices/test_summands.py::test_arrays_of_summands_of_the_user": _SUMMED,
    "tests/transforms/devices/test_summands.py::test_what_is_no_sum_of_parts_is_of_the_first_member": _SUMMED,  # noqa: E501
    "tests/transforms/devices/test_type_rules.py::test_picking_out_of_a_split_dimension_offers_what_helps": _FOUND,  # noqa: E501
    "tests/transforms/jit/test_dynamic_calls.py::test_arguments_of_all_sorts": _SIZES,
    "tests/transforms/jit/test_dynamic_calls.py::test_static_arguments_have_programs_of_their_own": _SIZES,  # noqa: E501
    "tests/transforms/jit/test_dynamic_calls.py::test_sizes_that_take_long_get_a_program_of_their_own": _SIZES,  # noqa: E501
    "tests/transforms/jit/test_dynamic_calls.py::test_as_many_calls_are_served_as_take_as_long_as_a_program": _SIZES,  # noqa: E501
    "tests/transforms/jit/test_dynamic_calls.py::test_a_program_for_one_size_is_no_retrace": _SIZES,
    "tests/transforms/jit/test_dynamic_calls.py::test_a_thousand_lengths_ask_python_three_times": _SIZES,  # noqa: E501
    "tests/transforms/jit/test_dynamic_calls.py::test_a_size_that_comes_back_often_gets_an_entry_of_its_own": _MACHINE_CODE,  # noqa: E501
    "tests/transforms/jit/test_dynamic_calls.py::test_a_function_made_anew_asks_once": _MACHINE_CODE,  # noqa: E501
    "tests/transforms/test_free_sizes.py::test_small_products_serve_large_ones": _STEPS,
    "tests/transforms/test_free_sizes.py::test_a_special_size_does_not_make_all_sizes_static": _SIZES,  # noqa: E501
    "tests/transforms/test_found_sizes.py::test_programs_are_shown_and_run_otherwise": _STEPS,
    "tests/test_chinese_pages.py::test_its_examples_run[docs/compiler.md]": _PRINTED,
    "tests/test_chinese_pages.py::test_its_examples_run[docs/guide/derivatives.md]": _PRINTED,
    "tests/test_chinese_pages.py::test_its_examples_run[docs/guide/devices.md]": _PRINTED,
    "tests/test_chinese_pages.py::test_its_examples_run[docs/guide/extending.md]": _PRINTED,
    "tests/test_chinese_pages.py::test_its_examples_run[docs/guide/jit.md]": _PRINTED,
    "tests/test_chinese_pages.py::test_its_examples_run[docs/guide/speed.md]": _PRINTED,
    "tests/test_chinese_pages.py::test_its_examples_run[docs/guide/tracing.md]": _PRINTED,
    "tests/test_chinese_pages.py::test_its_examples_run[docs/profiling.md]": _PRINTED,
    "tests/test_documentation.py::test_docstrings[calque.core.arrays]": _PRINTED,
    "tests/test_documentation.py::test_docstrings[calque.core.devices]": _PRINTED,
    "tests/test_documentation.py::test_docstrings[calque.device_functions]": _PRINTED,
    "tests/test_documentation.py::test_docstrings[calque.experimental.mesh_utils]": _PRINTED,
    "tests/test_documentation.py::test_docstrings[calque.experimental.topologies]": _PRINTED,
    "tests/test_documentation.py::test_docstrings[calque.explaining.showing]": _PRINTED,
    "tests/test_documentation.py::test_docstrings[calque.extend.backend]": _PRINTED,
    "tests/test_documentation.py::test_docstrings[calque.profiling.report]": _PRINTED,
    "tests/test_documentation.py::test_docstrings[calque.transforms.devices.sharding]": _PRINTED,
    "tests/test_documentation.py::test_docstrings[calque.transforms.devices.sharding_arrays]": _PRINTED,  # noqa: E501
    "tests/test_documentation.py::test_guides[derivatives.md]": _PRINTED,
    "tests/test_documentation.py::test_guides[devices.md]": _PRINTED,
    "tests/test_documentation.py::test_guides[extending.md]": _PRINTED,
    "tests/test_documentation.py::test_guides[jit.md]": _PRINTED,
    "tests/test_documentation.py::test_guides[speed.md]": _PRINTED,
    "tests/test_documentation.py::test_guides[tracing.md]": _PRINTED,
    "tests/test_documentation.py::test_pages[compiler.md]": _PRINTED,
    "tests/test_documentation.py::test_pages[profiling.md]": _PRINTED,
    "tests/test_documented_commands.py::test_a_command_runs[python -m calque show model.py:loss 'f32[128,784]' '{\"w\": f32[784,10]}' -o loss.html]": _PRINTED,  # noqa: E501
    "tests/test_documented_commands.py::test_a_command_runs[python tools/ptx_spike.py]": _PRINTED,
    "tests/test_ffi.py::test_errors_of_functions[jit]": _SAID,
    "tests/test_help.py::test_examples_print_what_they_say[calque-0-1]": _PRINTED,
    "tests/test_help.py::test_examples_print_what_they_say[calque.experimental.mesh_utils-0-1]": _PRINTED,  # noqa: E501
    "tests/test_help.py::test_examples_print_what_they_say[calque.experimental.topologies-0-1]": _PRINTED,  # noqa: E501
    "tests/test_help.py::test_examples_print_what_they_say[calque.numpy-5-8]": _PRINTED,
    "tests/test_help.py::test_examples_print_what_they_say[calque.sharding-0-1]": _PRINTED,
    "tests/test_interrupts.py": _INTERRUPTS,
    "tests/test_ptx_spike.py": _STEPS,
    "tests/test_readme.py::test_blocks_run_as_written": _SERVED,
    "tests/command_line/test_commands.py::test_profile_and_explain_of_a_function": _STEPS,
    "tests/command_line/test_commands.py::test_profile_of_a_program": _STEPS,
    "tests/core/test_devices.py::test_clients": _NAMES,
    "tests/core/test_devices.py::test_the_flag_counts_until_devices_are_asked_for": _OPENED,
    "tests/core/test_lazy.py::test_what_a_small_program_does_not_need_is_not_imported": _IMPORTS,
    "tests/core/test_trace_state.py::test_a_child_forked_while_another_thread_traces": _FORKS,
    "tests/explaining/test_drawing.py::test_arguments_steps_and_results": _STEPS,
    "tests/explaining/test_drawing.py::test_arguments_that_nobody_reads_are_left_out": _STEPS,
    "tests/explaining/test_drawing.py::test_branches_stand_beside_each_other": _STEPS,
    "tests/explaining/test_drawing.py::test_every_step_has_a_box_of_its_own": _STEPS,
    "tests/explaining/test_drawing.py::test_long_lines_are_cut": _STEPS,
    "tests/explaining/test_drawing.py::test_loops_stand_around_their_steps": _STEPS,
    "tests/explaining/test_drawing.py::test_many_arguments_are_one_box": _STEPS,
    "tests/explaining/test_links.py::test_loops_and_machine_code_are_linked_with_the_source": _STEPS,  # noqa: E501
    "tests/explaining/test_page.py::test_the_page_links_source_and_program": _STEPS,
    "tests/explaining/test_report.py::test_a_program_that_another_process_planned_is_explained_as_well": _STEPS,  # noqa: E501
    "tests/explaining/test_report.py::test_every_part_is_there": _STEPS,
    "tests/explaining/test_report.py::test_free_sizes_and_their_guards": _STEPS,
    "tests/explaining/test_report.py::test_host_calls_and_kernels_are_counted": _STEPS,
    "tests/explaining/test_report.py::test_stats_count": _STEPS,
    "tests/explaining/test_showing.py::test_a_function_that_does_nothing": _STEPS,
    "tests/explaining/test_showing.py::test_donated_arguments_are_copied": _STEPS,
    "tests/explaining/test_showing.py::test_it_opens_in_a_browser": _STEPS,
    "tests/explaining/test_showing.py::test_sizes_that_vary_and_programs_from_disk": _STEPS,
    "tests/explaining/test_showing.py::test_steps_are_tied_together": _STEPS,
    "tests/explaining/test_showing.py::test_the_page_has_graph_timeline_loops_and_lines": _STEPS,
    "tests/explaining/test_statistics.py::test_the_bytes_of_code_grow_with_new_kernels": _STEPS,
    "tests/mistakes/test_mistakes.py::test_the_message_says_what_it_must[an_array_too_large_for_memory_under_jit]": _AWAITED,  # noqa: E501
    "tests/profiling/test_perf.py::test_a_process_writes_it_at_its_end_where_a_variable_asks_for_it": _STEPS,  # noqa: E501
    "tests/profiling/test_perf.py::test_kernels_have_names_and_ranges": _STEPS,
    "tests/profiling/test_report.py::test_donated_arguments_are_copied": _STEPS,
    "tests/profiling/test_report.py::test_host_calls_are_named": _STEPS,
    "tests/profiling/test_report.py::test_the_table_says_where_the_time_goes": _STEPS,
    "tests/profiling/test_report.py::test_the_timeline": _STEPS,
    "tests/profiling/test_server.py::test_a_timeline_of_what_other_threads_do": _STEPS,
    "tests/profiling/test_session.py::test_sizes_that_vary_are_one_program": _SIZES,
    "tests/profiling/test_session.py::test_times_spans_and_samples": _STEPS,
    "tests/profiling/test_session.py::test_what_it_costs_is_taken_away": _STEPS,
    "tests/profiling/test_steps.py::test_every_step_of_the_code_is_described": _STEPS,
    "tests/profiling/test_steps.py::test_names_kinds_and_lines": _STEPS,
    "tests/profiling/test_steps.py::test_programs_are_found_by_their_exact_types": _STEPS,
    "tests/profiling/test_steps.py::test_programs_are_found_with_their_executables": _STEPS,
    "tests/profiling/test_steps.py::test_the_parts_of_a_loop_are_not_counted_as_the_loop": _STEPS,
    "tests/profiling/test_steps.py::test_what_prepares_is_named_by_what_it_is_for": _STEPS,
    "tests/profiling/test_traces.py::test_events_that_were_lost_are_said": _STEPS,
    "tests/profiling/test_traces.py::test_what_a_timeline_shows": _STEPS,
    "tests/profiling/test_work.py::test_next_to_nothing": _STEPS,
    "tests/profiling/test_work.py::test_operations_and_what_they_weigh": _STEPS,
    "tests/profiling/test_work.py::test_products_have_two_operations_a_term": _STEPS,
    "tests/profiling/test_work.py::test_what_a_turn_of_a_loop_reads_of_an_array": _STEPS,
}

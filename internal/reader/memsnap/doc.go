// Package memsnap reads the memory snapshots of PyTorch's caching allocator: the segments
// that it has from the driver, their blocks, and the history of both, with stacks.
//
// torch.cuda.memory._dump_snapshot writes one as a pickle (PyTorch 2.0 and newer; 1.4 and
// newer have torch.cuda.memory_snapshot, whose list of segments people pickle), and so
// does C++ (torch/csrc/cuda/memory_snapshot.cpp, torch/csrc/Module.cpp, torch/cuda/memory.py). trace_plot
// of torch/cuda/_memory_viz.py puts the same pickle into a page as base64. The top level:
//
//	segments              list of {device, address, total_size, allocated_size, active_size, requested_size, stream,
//	                      segment_type, segment_pool_id, is_expandable, frames, blocks}; or it is this list itself
//	  blocks              list of {address, size, requested_size, state, frames}; before 2.1 without address and frames,
//	                      with history: list of {addr, real_size, frames}, newest first
//	device_traces         a list for each device of {action, addr or device_free, size, stream, time_us, frames,
//	                      category, compile_context, user_metadata, pool_id}, oldest first
//	allocator_settings    {PYTORCH_CUDA_ALLOC_CONF, max_split_size, ..., roundup_power2_divisions}
//	external_annotations  list of {name, stage, device, time_us}
//	frames                list of {name, filename, line}, innermost first
//
// Every key may be absent, and stand anywhere. Unknown ones are passed over.
//
// The pickle is run by a stack machine that knows only these objects, and keeps of
// them what evidence.MemSnapshot holds: nothing is imported or called, and an opcode that
// would is refused. Equal stacks are one, whether the file shares them or not. Entries go to
// their list as they end, so that no list of them is held twice.
package memsnap

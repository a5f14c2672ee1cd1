package detect

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/evidence"
)

// stack restates the traceback that led to the leading fault.
func stack(in Input, f evidence.Known) {
	e := in.Lead
	if e == nil {
		return
	}
	f.Set("fault.kind", evidence.TextOf(string(e.Kind)), e.Span)
	f.Set("fault.text", evidence.TextOf(e.Text), e.Span)
	if w := e.Attrs.Str("what"); w != "" {
		f.Set("fault.what", evidence.TextOf(w), e.Span)
	}
	if e.Who.Rank != evidence.None {
		f.Set("fault.rank", evidence.IntOf(int64(e.Who.Rank)), e.Span)
	}
	if e.Who.Host != "" {
		f.Set("fault.host", evidence.TextOf(e.Who.Host), e.Span)
	}
	if e.Kind == evidence.Exception {
		f.Set("exception.type", evidence.TextOf(e.Attrs.Str("type")), e.Span)
	}
	if len(e.Stack) == 0 {
		return
	}
	var fn, src, files []string
	for _, fr := range e.Stack {
		fn = append(fn, fr.Function)
		src = append(src, fr.Source)
		files = append(files, fr.File)
	}
	f.Set("trace.functions", evidence.TextOf(strings.Join(fn, " > ")), e.Span)
	f.Set("trace.source", evidence.TextOf(strings.Join(src, "\n")), e.Span)
	f.Set("trace.files", evidence.TextOf(strings.Join(files, "\n")), e.Span)
}

// phases maps what a stack shows to a phase, most telling first: the outer
// context (evaluation, generation, saving) says more than the call that failed.
var phases = []struct {
	phase     string
	functions []string // substrings of a function name
	sources   []string // substrings of a source line
	files     []string // substrings of a file name
}{
	{"evaluation", []string{"validation", "evaluat", "prediction_step", "eval_step", "eval_epoch", "test_step", "val_step", "run_eval", "estimate_loss", "probe_loss"}, []string{"evaluate(", "validate(", ".eval_"}, []string{"evaluation_loop"}},
	{"generation", []string{"generate", "_beam_search", "_sample", "greedy_search"}, []string{".generate("}, nil},
	{"checkpoint", []string{"save_checkpoint", "save_model", "_save", "save_state", "full_state_dict", "get_model_state_dict"}, []string{"torch.save(", "save_checkpoint(", "save_pretrained("}, nil},
	{"optimizer", []string{"_init_group", "_initialize_state", "_lazy_init_state"}, []string{"optimizer.step(", "opt.step(", "optim.step(", "exp_avg", "state['", "state[\""}, []string{"/optim/", "optimizer.py", "fused_adam"}},
	{"backward", []string{"backward", "run_backward"}, []string{".backward("}, []string{"autograd/__init__", "autograd/graph"}},
	{"resume", []string{"load_checkpoint", "resume"}, []string{"torch.load(", "load_state_dict("}, nil},
	{"load", []string{"from_pretrained", "load_state_dict", "_load_state_dict", "load_model", "load_weights", "load_shard"}, []string{"from_pretrained(", "load_model("}, nil},
	{"collective", []string{"all_reduce", "all_gather", "broadcast", "barrier", "reduce_scatter", "init_process_group", "new_group"}, nil, []string{"distributed_c10d"}},
	{"setup", []string{"setup_cache", "_apply", "convert", "cuda", "init_device", "__init__"}, []string{".to(device", ".cuda(", ".to(torch.device", "DistributedDataParallel("}, nil},
	{"forward", []string{"forward", "_call_impl", "training_step", "train_step"}, []string{"model(", "net("}, nil},
}

// phaseOf says what the run was doing at e: from its stack, else from the last
// phase marker of the same file before it, else "unknown".
func phaseOf(in Input, e *evidence.Event) string {
	if len(e.Stack) > 0 {
		forward := false
		for _, fr := range e.Stack {
			if fr.Function == "forward" {
				forward = true
			}
		}
		for _, p := range phases {
			if forward && p.phase == "setup" {
				continue // lazy set-up inside a forward pass is the forward pass
			}
			for _, fr := range e.Stack {
				if hasAny(fr.Function, p.functions) || hasAny(fr.Source, p.sources) || hasAny(fr.File, p.files) {
					return p.phase
				}
			}
		}
	}
	phase := "unknown"
	for _, x := range in.Events {
		if x.Kind == evidence.PhaseMark && x.Span.Artifact == e.Span.Artifact && x.Span.Offset < e.Span.Offset && x.Who.Launch == e.Who.Launch {
			phase = x.Attrs.Str("phase")
		}
	}
	return phase
}

func hasAny(s string, parts []string) bool {
	if s == "" {
		return false
	}
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

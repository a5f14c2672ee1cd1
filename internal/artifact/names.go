package artifact

import (
	"strconv"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A naming is one way in which names of files or folders say whose they are.
// Its groups rank, local, host, attempt and job fill the parts of an owner that
// are still unknown; what it matched is taken out of the name, so that a later
// row does not read it another way (local_rank_1 as rank 1). A row without
// groups only takes out.
type naming struct {
	file, folder bool
	re           *lazyre.Regexp
	words        []string // the expression matches no name, in lower case, without one of these
}

// The words, separated by bars, spare the expression for most names: a folder of
// a data set has a hundred thousand.
func both(words, re string) naming    { return newNaming(true, true, words, re) }
func files(words, re string) naming   { return newNaming(true, false, words, re) }
func folders(words, re string) naming { return newNaming(false, true, words, re) }

func newNaming(file, folder bool, words, re string) naming {
	return naming{file, folder, lazyre.New(re), strings.Split(words, "|")}
}

// may reports whether n can match a name, given in lower case.
func (n *naming) may(lower string) bool {
	for _, w := range n.words {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return false
}

// namings is tried from top to bottom on each part of a path, the file's name
// first and then its folders, the innermost first.
var namings = []naming{
	// Said outright: host=node-17/
	folders("host=", `^host=(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*)$`),
	// NeMo: nemo_log_globalrank-3_localrank-3.txt
	both("rank", `(?i)global_?rank[-_]?(?P<rank>\d+)`),
	// mmengine: 20260102_030405_node3_device3_rank3.log
	files("rank", `^\d{8}_\d{6}_(?P<host>.+)_device\d+_rank(?P<rank>\d+)`),
	both("rank", `(?i)(?:^|[^a-z])local[-_]?rank[-_.=]?(?P<local>\d+)`),
	// Ranks of something else: node rank, parallel groups (mp_rank_00_model_states).
	both("rank", `(?i)(?:^|[^a-z])(?:node|group|role|machine|mp|tp|pp|dp|cp|ep|sp)[-_]?rank[-_.=]?\d+`),
	both("multi", `(?i)multi[-_]?node[-_]?\d*`),
	// rank0/, rank_0003.log, log.txt.rank3, out-rank-3.txt, nccl_trace_rank_0
	files("rank", `(?i)(?:^|[^a-z])rank[-_.=]?(?P<rank>\d+)`),
	// A folder is a rank's only if nothing follows: 07-rank2-oom/ tells a story.
	folders("rank", `(?i)(?:^|[^a-z])rank[-_.=]?(?P<rank>\d+)$`),

	// Ray: worker-<id>-<Ray job>-<pid>.out; its numbers are neither.
	files("worker|driver", `^(?:python-core-)?(?:worker|driver)-[0-9a-f]{6,}-\d{8}[-_]\d+`),

	// Kubernetes: pods named for their role (Kubeflow, JobSet, Ray), the folders
	// of /var/log/pods and the files of /var/log/containers.
	files(".log", `^(?P<host>[a-z0-9][a-z0-9.-]*)_[a-z0-9-]+_[a-z0-9.-]+-[0-9a-f]{64}\.log`),
	folders("_", `^[a-z0-9-]+_(?P<host>[a-z0-9][a-z0-9.-]*)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`),
	both("-master-|-worker-|-launcher-|-chief-|-ps-|-trainer-", `^(?P<host>[a-z0-9][a-z0-9-]*-(?:master|worker|launcher|chief|ps|trainer)-(?:[a-z0-9]+-)*?\d+(?:-[a-z0-9]{5})?)(?:[._]|$)`),

	// Attempts: attempt_1 (torchrun), restart-2, retry1
	both("attempt|restart|retry", `(?i)(?:^|[-_.])(?P<attempt>(?:attempt|restart|retry)[-_.]?\d+)(?:[-_.]|$)`),

	// Slurm: slurm-%j.out, slurm-%A_%a.out, slurm-%j.%t.out
	files("slurm", `^slurm-(?P<job>\d+(?:_\d+)?)\.(?P<rank>\d{1,5})\.(?:out|err)`),
	both("slurm", `^slurm[-_](?P<job>\d+(?:_\d+)?)`),
	// Slurm %x_%j_%t: run_1234_3.err. (With %x_%A_%a the last number is an array
	// index; names alone cannot tell, contents can.)
	files(".out|.err", `^(?:[A-Za-z][\w.-]*?[-_])?(?P<job>\d{4,10})[-_.](?P<rank>\d{1,4})\.(?:out|err)$`),
	// job_1234/, job-1234.log, jobid=1234
	both("job", `(?i)(?:^|[-_.])job(?:[-_]?id)?[-_.=]?(?P<job>\d{2,}(?:_\d+)?)(?:[-_.]|$)`),
	// PBS, SGE: name.o1234, name.e1234.7
	files(".o|.e", `\.[oe](?P<job>\d{3,}(?:[.-]\d+)?)$`),
	// %x-%j.out, %j.err, LSF %J.out; 1234567.log
	files(".out|.err", `(?:^|[-_.])(?P<job>\d{4,10})\.(?:out|err)$`),
	files(".out|.err", `[-_.](?P<job>\d{7,9})[-_.][\w.-]*\.(?:out|err)$`),
	files(".log|.txt", `^(?P<job>\d{6,10})\.(?:log|txt)$`),
	folders("", `^(?P<job>\d{5,10})$`),

	// Hosts: node0, host-b, ip-10-0-0-1, 10.0.0.1, dgx-012, gpu-node-07, nid004321
	both("gpu", `(?i)(?:^|[-_.])(?P<host>gpu-?node[-_]?\d{1,6})(?:[-_.]|$)`),
	files("node|host", `(?i)(?:^|[-_.])(?P<host>(?:node|host)(?:[-_]?\d{1,6}|[-_][a-z]|[a-rt-z]))(?:[-_.]|$)`),
	// A folder is a host's only if nothing follows but what is kept in it: lost-node3-of-8/ tells a story.
	folders("node|host", `(?i)(?:^|[-_.])(?P<host>(?:node|host)(?:[-_]?\d{1,6}|[-_][a-z]|[a-rt-z]))(?:[-_.](?:logs?|out(?:put)?|run|artifacts|data|files|results?))?$`),
	both("ip-", `(?:^|[-_.])(?P<host>ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})(?:[-_.]|$)`),
	both(".", `(?:^|[-_])(?P<host>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?:[-_.]|$)`),
	both("dgx|hgx|nid|compute|cn|gpu", `(?i)(?:^|[-_.])(?P<host>(?:(?:dgx|hgx|nid|compute)[a-z-]*\d{1,6})|cn\d{3,6}|gpu[a-z-]*\d{3,6})(?:[-_.]|$)`),
	// What a host's own tools are saved as: dmesg_hg-0213.txt, nvidia-smi.trn07.csv
	files("dmesg|kern|syslog|messages|journal|nvidia|smi|dcgm|gpumon", `(?i)^(?:dmesg|kern(?:log)?|syslog|messages|journal(?:ctl)?|nvidia[-_]smi|smi|dcgm|gpumon)[-_.](?P<host>[a-z][a-z0-9-]*[a-z-]\d+[a-z0-9-]*)\.(?:txt|log|csv)`),
}

// stated is what one row read from one name.
func (n naming) stated(name string) (m []int, groups map[string]string) {
	m = n.re.FindStringSubmatchIndex(name)
	if m == nil {
		return nil, nil
	}
	groups = make(map[string]string)
	for i, g := range n.re.SubexpNames() {
		if g != "" && m[2*i] >= 0 {
			groups[g] = name[m[2*i]:m[2*i+1]]
		}
	}
	if isDate(groups["job"]) {
		return nil, nil
	}
	return m, groups
}

// ownerOf says whose the file at a slash path is, as far as its name and
// folders tell. Archives count as folders.
func ownerOf(place string) evidence.Owner {
	o := evidence.Owner{Rank: evidence.None, LocalRank: evidence.None}
	var basis []string
	parts := strings.Split(place, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		part, isFile := parts[i], i == len(parts)-1
		sort := "folder "
		if isFile {
			sort = "file name "
		}
		used := false
		rest := uncompressedName(part)
		lower := strings.ToLower(rest) // what is taken out of rest adds no word
		for _, n := range namings {
			if isFile && !n.file || !isFile && !n.folder {
				continue
			}
			if !n.may(lower) {
				continue
			}
			m, groups := n.stated(rest)
			if m == nil {
				continue
			}
			for g, v := range groups {
				used = set(&o, g, v) || used
			}
			rest = rest[:m[0]] + "/" + rest[m[1]:]
		}
		// torchrun --log-dir D: D/<run id>_<random>/attempt_<k>/<local rank>/stderr.log
		if !isFile && i > 0 && i < len(parts)-1 && digits(part) && attemptFolder.MatchString(parts[i-1]) {
			used = set(&o, "local", part) || used
		}
		if !isFile && i < len(parts)-2 && attemptFolder.MatchString(parts[i+1]) {
			if m := elasticFolder.FindStringSubmatch(part); m != nil && m[1] != "none" {
				used = set(&o, "job", m[1]) || used
			}
		}
		// ranks/3.log
		if isFile && i > 0 && ranksFolder.MatchString(parts[i-1]) {
			if m := numberFile.FindStringSubmatch(part); m != nil {
				used = set(&o, "rank", m[1]) || used
			}
		}
		if used {
			basis = append(basis, sort+printable(part))
		}
	}
	o.Basis = strings.Join(basis, ", ")
	return o
}

var (
	attemptFolder = lazyre.New(`^attempt_\d+$`)
	elasticFolder = lazyre.New(`^(.+)_[a-z0-9_]{8}$`) // tempfile.mkdtemp with prefix "<run id>_"
	ranksFolder   = lazyre.New(`(?i)^(?:per[-_]?)?ranks?(?:[-_]logs)?$`)
	numberFile    = lazyre.New(`^(\d{1,5})\.(?:log|out|err|txt)`)
)

// set fills one part of o if it is unknown, and reports whether it did.
func set(o *evidence.Owner, part, v string) bool {
	number := func(n *int) bool {
		i, err := strconv.Atoi(v)
		if *n != evidence.None || err != nil || len(v) > 6 {
			return false
		}
		*n = i
		return true
	}
	text := func(s *string) bool {
		if *s != "" {
			return false
		}
		*s = printable(v)
		return true
	}
	switch part {
	case "rank":
		return number(&o.Rank)
	case "local":
		return number(&o.LocalRank)
	case "host":
		if l := strings.ToLower(v); strings.HasPrefix(l, "xid") && digits(l[3:]) { // dmesg_xid79.log names the fault
			return false
		}
		return text(&o.Host)
	case "attempt":
		return text(&o.Attempt)
	case "job":
		return text(&o.Job)
	}
	return false
}

// uncompressedName drops what compression and rotation add to a name.
func uncompressedName(name string) string {
	for _, ext := range []string{".gz", ".zst", ".xz", ".bz2"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// isDate reports whether a number is rather a day or a year than a job's id.
func isDate(s string) bool {
	switch len(s) {
	case 4:
		return s >= "1990" && s < "2100"
	case 6:
		_, err := time.Parse("060102", s)
		return err == nil && s >= "15" && s < "40"
	case 8:
		_, err := time.Parse("20060102", s)
		return err == nil && s >= "1990" && s < "2100"
	}
	return false
}

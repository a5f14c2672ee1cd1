package redact

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/lazyre"
)

// A context is a place in text where a name of one kind stands: the second group of its
// expression. A name is found there, and learned for all other places.
type context struct {
	kind  string
	hints []string // of which one stands in the line, in lower case
	re    *lazyre.Regexp
}

const (
	hostWord = `([A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*)`
	userWord = `([A-Za-z_][A-Za-z0-9_.-]*[A-Za-z0-9_$])`
	nameWord = `("[^"\n]{1,120}"|'[^'\n]{1,120}'|[^\s"',;(){}\[\]<>=|\\]{2,120})`
)

var contexts = []context{
	{User, []string{"user", "logname", "owner", "login", "account"}, lazyre.New(`((?:^|[^A-Za-z0-9])(?:USER|USERNAME|LOGNAME|SUDO_USER|SLURM_JOB_USER|user|username|user_name|login|owner|submitted_by|author|UserId|User)(?:\\*["'])?\s*(?:=|:\s*\\*["'])\s*(?:\\*["'])?)` + userWord)},
	{User, []string{"uid", "gid"}, lazyre.New(`((?:uid|gid|groups|UserId|GroupId)=\d*\(|UserId=)` + userWord)},
	{User, []string{"for user ", "by user ", "as user ", "user:", "logged in as", "connection closed by"}, lazyre.New(`((?:for|by|as|of) user ['"]?|logged in as:? ['"]?|Connection closed by (?:authenticating )?user )` + userWord)},
	{User, []string{"session opened", "session closed", "sudo"}, lazyre.New(`(session (?:opened|closed) for user |sudo: +)` + userWord)},
	{Host, []string{"nccl"}, lazyre.New(`((?:^|[\s>\]|])\[?)` + hostWord + `:\d+:\d+ \[\d+\] (?:[\d:. -]+)?NCCL`)},
	{Host, []string{"host", "node", "machine", "server", "master"}, lazyre.New(`((?:^|[^A-Za-z0-9])(?:HOST|HOSTNAME|hostname|host_name|host|node_name|nodename|NodeName|node_id|NODE_NAME|SLURMD_NODENAME|SLURM_JOB_NODELIST|SLURM_NODELIST|SLURM_STEP_NODELIST|SLURM_LAUNCH_NODE_IPADDR|SLURM_SUBMIT_HOST|SLURM_TOPOLOGY_ADDR|BatchHost|ReqNodeList|NodeList|MASTER_ADDR|master_addr|MasterAddr|machine|Machine|server|fqdn|nodelist)(?:\\*["'])?\s*[=:]\s*(?:\\*["'])?)` + hostWord)},
	{Host, []string{"node", "host"}, lazyre.New(`(\b(?:[Oo]n|from|to|at|of) (?:the )?(?:compute )?(?:node|host|machine|server):? ['"]?)([A-Za-z][A-Za-z0-9-]*(?:\d|\.[A-Za-z])[A-Za-z0-9.-]*)`)},
	{Host, []string{"node "}, lazyre.New(`((?:^|\s)(?:[Nn]ode|ON|host) )([A-Za-z][A-Za-z-]*\d+(?:\.[A-Za-z0-9.-]+)?)`)},
	{Host, []string{"srun:"}, lazyre.New(`(srun: (?:error|warning|info): )` + hostWord + `: (?:task|tasks|Killed|Terminated)`)},
	{Host, []string{"slurmstepd", "slurmd", " on "}, lazyre.New(`(slurmstepd-|slurmd-|slurmd\[|\*\*\* (?:JOB|STEP) \S+ ON |\bON )` + hostWord)},
	{Host, []string{"tcp://", "://"}, lazyre.New(`((?:tcp|ib|ssh|grpc|nccl|zmq|redis|ray)://)` + hostWord + `:\d+`)},
	{Host, []string{" kernel", "systemd", "sshd", "slurm", "nvidia", "nvrm", "audit", "cron"}, lazyre.New(`(^(?:<\d+>)?(?:[A-Z][a-z]{2} +\d+ \d{2}:\d{2}:\d{2}|\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?) )` + hostWord + ` (?:kernel|systemd|sshd|slurm|nvidia|dockerd|containerd|kubelet|CRON|audit|dhclient|NetworkManager|chronyd|ntpd|rsyslogd|dbus)[\w./-]*(?:\[\d+\])?:`)},
	{Host, []string{"[", ":"}, lazyre.New(`((?:^|\s)\[)([A-Za-z][A-Za-z0-9-]*\d[A-Za-z0-9.-]*):\d+\]`)},
	{Host, []string{"connect", "resolve", "reach", "refused", "peer", "remote", "lookup", "getaddrinfo", "rendezvous", "timed out"}, lazyre.New(`((?:connect(?:ed|ing|ion)?(?: to| from)?|resolve|reach|reset by|peer|remote(?: process)?|lookup|host|client socket has failed to connect to|connection (?:to|from)) \[?['"(]?)([A-Za-z][A-Za-z0-9-]*(?:\d|\.[A-Za-z])[A-Za-z0-9.-]*)`)},
	{Name, []string{"name", "project", "entity", "experiment", "exp", "group", "account", "job", "run", "tag", "qos", "reservation", "bucket", "tenant", "workspace", "org", "team", "model"}, lazyre.New(`((?:^|[^A-Za-z0-9])(?:run[_-]?name|job[_-]?name|JobName|exp(?:eriment)?[_-]?name|experiment|project[_-]?name|wandb[_-]?(?:project|entity|name|group|run[_-]?name)|WANDB_(?:PROJECT|ENTITY|NAME|RUN_GROUP|TAGS|NOTES)|MLFLOW_EXPERIMENT_NAME|COMET_(?:PROJECT_NAME|WORKSPACE)|NEPTUNE_PROJECT|CLEARML_PROJECT|SLURM_JOB_(?:NAME|ACCOUNT|QOS|RESERVATION)|Account|QOS|Reservation|account|entity|project|bucket|tenant|workspace|organization|team|namespace|pod_name|POD_NAME|container_name|ContainerName|pod|app_name|hub[_-]model[_-]id|HUB_MODEL_ID)(?:\\*["'])?\s*[=:]\s*(?:\\*["'])?)` + nameWord)},
	{Name, []string{"--"}, lazyre.New(`(--(?:run[_-]?name|job[_-]?name|JobName|exp(?:eriment)?[_-]?name|experiment|project[_-]?name|wandb[_-]?(?:project|entity|name|group|run[_-]?name)|WANDB_(?:PROJECT|ENTITY|NAME|RUN_GROUP|TAGS|NOTES)|MLFLOW_EXPERIMENT_NAME|COMET_(?:PROJECT_NAME|WORKSPACE)|NEPTUNE_PROJECT|CLEARML_PROJECT|SLURM_JOB_(?:NAME|ACCOUNT|QOS|RESERVATION)|Account|QOS|Reservation|account|entity|project|bucket|tenant|workspace|organization|team|namespace|pod_name|POD_NAME|container_name|ContainerName|pod|app_name|hub[_-]model[_-]id|HUB_MODEL_ID)[\s=]+)` + nameWord)},
	{Name, []string{"wandb"}, lazyre.New(`(Syncing run |View (?:run|project|sweep) (?:at )?|Tracking run with wandb version |Run data is saved locally in |Resuming run )` + nameWord)},
	{Name, []string{"wandb"}, lazyre.New(`(logged in as:? [^\s(]+ \()([A-Za-z0-9_.-]+)\)`)},
	{Name, []string{"pod", "namespace", "container", "serviceaccount", "job/", "pods"}, lazyre.New(`((?:pods?|jobs?|deployments?|services?|namespaces?|serviceaccounts?|configmaps?|secrets?)[/ ]["']?)([a-z0-9][a-z0-9-]*-[a-z0-9-]*[a-z0-9])`)},
	{Name, []string{"job", "batch"}, lazyre.New(`(Submitted batch job \d+ (?:named|as) |job name:? |Job Name:? )` + nameWord)},
}

// fqdn are names of hosts by their form: labels and a top level that names of code do not have.
var fqdn = lazyre.New(`[A-Za-z0-9][A-Za-z0-9-]*(?:\.[A-Za-z0-9][A-Za-z0-9-]*){1,6}`)

// lists are hosts as Slurm writes several of them.
var hostList = lazyre.New(`\b([A-Za-z][A-Za-z-]*\d*)\[(\d+(?:[-,]\d+)*)\]`)

// hostListBefore is what stands before such a list where it is no shape or index.
var hostListBefore = lazyre.New(`(?i)(?:node(?:s|list)?|hosts?|machines?)(?:\\*["'])?\s*[=:]?\s*(?:\\*["'])?(?:[A-Za-z0-9\[\],-]*,)?$|\bon $`)

// contexts learns the names in a line by where they stand, or replaces them there.
func (n *Names) contexts(s string) string {
	low := strings.ToLower(s)
	for i := range contexts {
		c := &contexts[i]
		if !holds(low, c.hints) {
			continue
		}
		s = replaceSecond(c.re, s, func(name string) string { return n.inContext(c.kind, name) })
	}
	if strings.Contains(s, "[") && (strings.Contains(low, "node") || strings.Contains(low, "host") || strings.Contains(low, " on ")) {
		s = around(hostList, s, func(before, m, _ string) string {
			if !hostListBefore.MatchString(before) {
				return m
			}
			if n.learning {
				n.hostsOf(m)
			}
			return n.token(Host, m)
		})
	}
	if strings.Contains(s, ".") {
		s = around(fqdn, s, func(before, m, after string) string {
			if !hostName(before, m, after) {
				return m
			}
			return n.hostToken(m)
		})
	}
	return s
}

// replaceSecond replaces the second group of each match.
func replaceSecond(re *lazyre.Regexp, s string, fn func(string) string) string {
	var b strings.Builder
	from := 0
	for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
		if m[4] < from {
			continue
		}
		b.WriteString(s[from:m[4]])
		b.WriteString(fn(s[m[4]:m[5]]))
		from = m[5]
	}
	return b.String() + s[from:]
}

// inContext is a name where its kind is known.
func (n *Names) inContext(kind, name string) string {
	quote := ""
	if len(name) > 1 && (name[0] == '"' || name[0] == '\'') {
		quote, name = name[:1], name[1:len(name)-1]
	}
	tail := urlEnd.FindString(name)
	name = name[:len(name)-len(tail)]
	back := quote + name + quote + tail
	low := strings.ToLower(name)
	if name == "" || ownWords.MatchString(low) || numeric(name) || plain.MatchString(low) || harmless(name) || strings.Contains(name, mask) || strings.HasPrefix(name, "--") {
		return back
	}
	switch kind {
	case Host:
		if loopback(low) || publicHost(low) || notHosts.has(low) || ordinary(strings.TrimRight(low, "0123456789")) && (!strings.ContainsAny(low, "0123456789") || notNumbered.has(strings.TrimRight(low, "0123456789-"))) {
			return back
		}
		name = n.hostToken(name)
	case User:
		if ordinary(name) {
			return back
		}
		name = n.user(name)
	case Name:
		if len(name) < 3 || ordinary(name) || notHosts.has(low) || strings.ContainsAny(name, "/\\") {
			return back
		}
		if n.learning {
			n.Add(Name, name)
		} else if t, ok := n.known(name); ok {
			name = t
		} else {
			name = n.token(Name, name)
		}
	}
	return quote + name + quote + tail
}

// notHosts are words that stand where a host may; notNumbered are those that have numbers and are
// none.
var (
	notHosts    = setOf(`the a an this that all any each other remote local store peer rank server client tcp socket port device gpu self none null unknown failed and or is was not with for kernel nccl torch same different another it error after before via`)
	notNumbered = setOf(`rank gpu cuda device process proc step epoch worker layer cpu core port pid job task local local_rank attempt stage group iteration iter sm fp bf int float uint v version python torch nccl ipv eth ib mlx hsn bond lo tensor shard part loss`)
)

// hostsOf makes known each host of a list.
func (n *Names) hostsOf(list string) {
	g := hostList.FindStringSubmatch(list)
	made := 0
	for _, item := range strings.Split(g[2], ",") {
		from, to, has := strings.Cut(item, "-")
		if !has {
			to = from
		}
		for at := from; len(at) == len(from) && at <= to && made < 1024; at = after(at) {
			n.host(g[1] + at)
			made++
		}
	}
}

// after is the number behind one, in as many digits.
func after(digits string) string {
	b := []byte(digits)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != '9' {
			b[i]++
			return string(b)
		}
		b[i] = '0'
	}
	return "1" + string(b)
}

// hostName reports whether a dotted word is the full name of a host.
func hostName(before, m, after string) bool {
	labels := strings.Split(strings.ToLower(m), ".")
	last := labels[len(labels)-1]
	if !topLevels.has(last) && !riskyLevels.has(last) || publicHost(strings.ToLower(m)) || extensions.has(last) || numeric(labels[0]) && len(labels) < 3 {
		return false
	}
	if strings.HasSuffix(before, ".") || strings.HasSuffix(before, "_") || strings.HasSuffix(before, "$") || after != "" && (after[0] == '_' || after[0] == '(' || after[0] == '[') {
		return false
	}
	name := strings.ContainsAny(labels[0], "0123456789-") && labels[0][0] >= 'a' && labels[0][0] <= 'z' && !notNumbered.has(strings.TrimRight(labels[0], "0123456789-"))
	if common.has(labels[0]) || libraries.has(labels[0]) {
		return false
	}
	switch {
	case topLevels.has(last):
		return len(labels) > 2 || name || !ordinary(labels[0]) && (last == "com" || last == "org" || last == "edu" || last == "gov" || last == "internal" || last == "lan" || last == "corp" || last == "hpc")
	case riskyLevels.has(last):
		return len(labels) > 2 && name || len(labels) > 2 && strings.HasPrefix(after, ":") || name && last == "local"
	}
	return false
}

// running replaces names that are known where they stand alone in running text.
func (n *Names) running(s string) string {
	if len(n.words) == 0 {
		return s
	}
	var b strings.Builder
	written := 0
	for i := 0; i < len(s); {
		if !runByte(s[i]) {
			i++
			continue
		}
		j := i
		for j < len(s) && runByte(s[j]) {
			j++
		}
		if r := n.run(s[i:j]); r != s[i:j] {
			b.WriteString(s[written:i])
			b.WriteString(r)
			written = j
		}
		i = j
	}
	if written == 0 {
		return s
	}
	return b.String() + s[written:]
}

func runByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c >= 0x80
}

// run replaces the longest names in one run of name characters, from its begin. A name is
// bounded by a sign, never by a letter or digit.
func (n *Names) run(word string) string {
	if ownWords.MatchString(strings.ToLower(word)) {
		return word
	}
	if t, ok := n.known(word); ok {
		return t
	}
	if !strings.ContainsAny(word, "._-") {
		return word
	}
	var b strings.Builder
	for at := 0; at < len(word); {
		if c := word[at]; c == '.' || c == '_' || c == '-' {
			b.WriteByte(c)
			at++
			continue
		}
		// The ends of pieces, farthest first.
		found := 0
		for end := min(len(word), at+n.longest); end > at; end-- {
			if end < len(word) && word[end] != '.' && word[end] != '_' && word[end] != '-' {
				continue
			}
			if end-at == len(word) {
				continue
			}
			if key, ok := n.words[strings.ToLower(word[at:end])]; ok && (n.kinds[key] != Name || end-at > 5) {
				n.took(key)
				b.WriteString(n.tokens[key])
				found = end
				break
			}
		}
		if found > 0 {
			at = found
			continue
		}
		end := at
		for end < len(word) && word[end] != '.' && word[end] != '_' && word[end] != '-' {
			end++
		}
		b.WriteString(word[at:end])
		at = end
	}
	return b.String()
}

package gpu

import (
	"strings"

	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/lazyre"
)

var (
	podID     = lazyre.New(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)
	longID    = lazyre.New(`(?:^|[-/:.])([0-9a-f]{64})(?:$|[./])`)
	machine   = lazyre.New(`/(?:lxc(?:\.payload)?[./]|machine\.slice/machine-)([^/]+?)(?:\.scope)?(?:/|$)`)
	slurmJob  = lazyre.New(`/(?:slurm[^/]*|slurmstepd\.scope)/(?:uid_\d+/)?job_(\d+)(?:/step_([^/]+))?`)
	pbsJob    = lazyre.New(`/pbs[^/]*/(?:jobid/)?(\d+(?:\[\d*\])?(?:\.[A-Za-z0-9_.-]+)?)(?:/|$)`)
	lsfJob    = lazyre.New(`/lsf/[^/]+/job\.(\d+(?:\[\d+\])?)`)
	fluxJob   = lazyre.New(`/flux[^/]*/.*?job-?([A-Za-z0-9ƒ]+)`)
	condorJob = lazyre.New(`/htcondor/(condor_[^/]+)`)
	unit      = lazyre.New(`/([^/]+\.service)(?:/|$)`)
)

// cgroups are the paths of /proc/PID/cgroup, the most telling first: the unified one, then
// those of the old controllers.
func cgroups(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && f[2] != "/" && len(out) < 32 {
			out = append(out, f[2])
		}
	}
	return out
}

// containerOf is the container that a cgroup names, nil where it names none.
func containerOf(cgroup string) *incident.HolderContainer {
	for _, path := range cgroups(cgroup) {
		c := incident.HolderContainer{Basis: "cgroup " + clip(path)}
		if m := podID.FindStringSubmatch(path); m != nil {
			c.Pod, c.Runtime = strings.ReplaceAll(m[1], "_", "-"), "kubernetes"
		}
		if all := longID.FindAllStringSubmatch(path, 8); len(all) > 0 {
			c.ID = all[len(all)-1][1] // the innermost
			for _, r := range [...]struct{ mark, runtime string }{{"cri-containerd", "containerd"}, {"crio", "cri-o"}, {"libpod", "podman"}, {"docker", "docker"}, {"nerdctl", "containerd"}, {"containerd", "containerd"}} {
				if strings.Contains(path, r.mark) {
					c.Runtime = r.runtime
					break
				}
			}
			if c.Runtime == "" {
				continue // 64 digits of something else
			}
		}
		if c.ID == "" && c.Pod == "" {
			if m := machine.FindStringSubmatch(path); m != nil {
				c.Runtime, c.ID = "lxc", m[1]
				if strings.Contains(path, "machine.slice") {
					c.Runtime = "machine"
				}
			}
		}
		if c.ID != "" || c.Pod != "" {
			return &c
		}
	}
	return nil
}

// jobOf is the scheduler's job of a process: by its cgroup, else by its environment.
func jobOf(p *Proc) *incident.HolderJob {
	for _, path := range cgroups(p.Cgroup) {
		basis := "cgroup " + clip(path)
		if m := slurmJob.FindStringSubmatch(path); m != nil {
			return &incident.HolderJob{Scheduler: "slurm", ID: m[1], Step: m[2], Basis: basis}
		}
		if m := lsfJob.FindStringSubmatch(path); m != nil {
			return &incident.HolderJob{Scheduler: "lsf", ID: m[1], Basis: basis}
		}
		if m := pbsJob.FindStringSubmatch(path); m != nil {
			return &incident.HolderJob{Scheduler: "pbs", ID: m[1], Basis: basis}
		}
		if m := condorJob.FindStringSubmatch(path); m != nil {
			return &incident.HolderJob{Scheduler: "htcondor", ID: m[1], Basis: basis}
		}
		if m := fluxJob.FindStringSubmatch(path); m != nil {
			return &incident.HolderJob{Scheduler: "flux", ID: m[1], Basis: basis}
		}
	}
	for _, v := range [...]struct{ name, scheduler, step, and string }{{"SLURM_JOB_ID", "slurm", "SLURM_STEP_ID", ""}, {"PBS_JOBID", "pbs", "", ""}, {"LSB_JOBID", "lsf", "", ""}, {"FLUX_JOB_ID", "flux", "", ""}, {"JOB_ID", "sge", "", "SGE_ROOT"}} {
		id := p.Env[v.name]
		if id == "" || !jobID.MatchString(id) || v.and != "" && p.Env[v.and] == "" {
			continue
		}
		j := &incident.HolderJob{Scheduler: v.scheduler, ID: id, Basis: v.name + " of its environment"}
		if step := p.Env[v.step]; step != "" && jobID.MatchString(step) {
			j.Step = step
		}
		return j
	}
	return nil
}

// jobID is what the number of a job may look like: it is put into commands that are printed.
var jobID = lazyre.New(`^[A-Za-z0-9ƒ][A-Za-z0-9ƒ._\[\]-]{0,80}$`)

// serviceOf is the systemd service that a process was started as, "" where it is none: the
// service in which users' sessions run is not.
func serviceOf(cgroup string) string {
	for _, path := range cgroups(cgroup) {
		m := unit.FindAllStringSubmatch(path, 4)
		if len(m) == 0 {
			continue
		}
		name := m[len(m)-1][1]
		if strings.HasPrefix(name, "user@") || strings.HasPrefix(name, "dbus") || strings.HasPrefix(name, "ssh") || strings.HasPrefix(name, "cron") || strings.HasPrefix(name, "slurmd") || strings.HasPrefix(name, "docker") || strings.HasPrefix(name, "containerd") || strings.HasPrefix(name, "kubelet") || strings.HasPrefix(name, "org.gnome") || strings.HasPrefix(name, "gnome-") || strings.HasPrefix(name, "tmux") {
			continue
		}
		if serviceName.MatchString(name) {
			return name
		}
	}
	return ""
}

var serviceName = lazyre.New(`^[A-Za-z0-9@_.:\\-]{1,120}\.service$`)

// clip is the beginning of a text that a process has in a place of a name.
func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

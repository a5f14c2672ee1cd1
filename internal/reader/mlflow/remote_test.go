package mlflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/reader"
)

// A fake is a tracking server with two experiments and three runs, as MLflow 3.17 answers:
// int64 as numbers or as text, values that are not finite as text.
func fake(t *testing.T, seen *[]string) *httptest.Server {
	mux := http.NewServeMux()
	answer := func(pattern string, f func(r *http.Request, body map[string]any) string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			*seen = append(*seen, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization"))
			var body map[string]any
			if r.Method == http.MethodPost {
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
			}
			text := f(r, body)
			if text == "" {
				w.WriteHeader(http.StatusInternalServerError)
				text = `{"error_code": "INTERNAL_ERROR", "message": "no such\u001b[31m metric"}`
			}
			fmt.Fprint(w, text)
		})
	}
	const base = "/prefix/api/2.0/mlflow/"
	answer("POST "+base+"experiments/search", func(r *http.Request, body map[string]any) string {
		if body["page_token"] == nil {
			return `{"experiments": [{"experiment_id": "0", "name": "Default"}], "next_page_token": "two"}`
		}
		return `{"experiments": [{"experiment_id": "7", "name": "toy"}]}`
	})
	run := func(id, name string, start int, status, metrics string) string {
		return fmt.Sprintf(`{"info": {"run_id": %q, "run_name": %q, "experiment_id": "7", "status": %q, "start_time": "%d", "lifecycle_stage": "active"},
 "data": {"metrics": [%s], "params": [{"key": "batch_size", "value": "32"}], "tags": [{"key": "mlflow.note.content", "value": "words"}]}}`, id, name, status, start, metrics)
	}
	const new = "0123456789abcdef0123456789abcdef"
	answer("POST "+base+"runs/search", func(r *http.Request, body map[string]any) string {
		if got := fmt.Sprint(body["experiment_ids"]); got != "[0 7]" {
			t.Errorf("experiments %s", got)
		}
		if body["page_token"] == nil {
			return `{"runs": [` + run(new, "second", 1700000100000, "RUNNING", `{"key": "loss", "value": "NaN"}, {"key": "a b/c", "value": 1}, {"key": "broken"}`) + `], "next_page_token": "x"}`
		}
		return `{"runs": [` + run("old", "first", 1700000000000, "FINISHED", `{"key": "loss"}`) + `]}`
	})
	answer("GET "+base+"runs/get", func(r *http.Request, _ map[string]any) string {
		return `{"run": ` + run(r.FormValue("run_id"), "second", 1700000100000, "KILLED", "") + `}`
	})
	answer("GET "+base+"metrics/get-history", func(r *http.Request, _ map[string]any) string {
		switch key := r.FormValue("metric_key"); {
		case r.FormValue("run_id") == "old":
			return `{"metrics": [{"key": "loss", "value": 0.5, "timestamp": 1700000000000}]}`
		case key == "loss" && r.FormValue("page_token") == "":
			return `{"metrics": [{"key": "loss", "value": 1.5, "timestamp": "1700000101000", "step": "0"}, {"key": "loss", "value": "NaN", "timestamp": 1700000102000, "step": 1}], "next_page_token": "p2"}`
		case key == "loss":
			return `{"metrics": [{"key": "loss", "value": "-Infinity", "timestamp": 1700000103000, "step": 2}, {"key": "loss", "value": 1.7976931348623157e308, "timestamp": 1700000104000, "step": 3}]}`
		case key == "a b/c":
			return `{"metrics": [{"value": 1, "timestamp": 1700000101000, "step": 5}]}`
		}
		return ""
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestFetch(t *testing.T) {
	var seen []string
	s := fake(t, &seen)
	k := &kept{Collector: reader.NewCollector()}
	if err := Fetch(t.Context(), Remote{Address: strings.Replace(s.URL, "http://", "http://ada:secret@", 1) + "/prefix/"}, k); err != nil {
		t.Fatal(err)
	}
	if len(k.runs) != 2 {
		t.Fatalf("%d runs", len(k.runs))
	}
	run, old := k.runs[0], k.runs[1]
	if run.Name != "second" || run.Project != "toy" || run.Status != evidence.RunOpen || run.Settings[0].Value != "32" || !run.Started.Known() || run.Artifact != s.URL+"/prefix" {
		t.Errorf("%+v", run)
	}
	if old.ID != "old" || old.Status != evidence.RunFinished || len(old.Tracks) != 1 {
		t.Errorf("%+v", old)
	}
	loss := run.Tracks[0]
	if len(run.Tracks) != 2 || loss.NaN != 1 || loss.NegInf != 1 || len(loss.Suspects) != 1 || loss.Segments[0].FirstBad.Step != 1 || loss.LastWall != 1700000104 {
		t.Errorf("%+v", loss)
	}
	if len(run.Damage) != 1 || !strings.Contains(run.Damage[0].Text, "no such") || strings.Contains(run.Damage[0].Text, "\x1b") {
		t.Errorf("damage: %+v", run.Damage)
	}
	if text := fmt.Sprintf("%+v %+v %+v", run, k.Events, k.Damages); strings.Contains(text, "secret") || strings.Contains(text, "ada") {
		t.Errorf("a password in the result: %s", text)
	}
	for _, line := range seen {
		if !strings.HasSuffix(line, " Basic YWRhOnNlY3JldA==") {
			t.Errorf("request %s", line)
		}
	}
	// One run, by the address of its page, with a token.
	seen, k = nil, &kept{Collector: reader.NewCollector()}
	if err := Fetch(t.Context(), Remote{Address: s.URL + "/prefix/#/experiments/7/runs/0123456789abcdef0123456789abcdef/metrics", Token: "t"}, k); err != nil {
		t.Fatal(err)
	}
	if len(k.runs) != 1 || k.runs[0].Status != evidence.RunKilled || len(seen) != 1 || !strings.HasSuffix(seen[0], " Bearer t") {
		t.Errorf("%d runs by %v", len(k.runs), seen)
	}
}

func TestFetchRefused(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host was asked: %s %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "another host"},
		{"circle", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, "in circles"},
		{"password", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "MLFLOW_TRACKING_USERNAME"},
		{"no MLflow", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "is not MLflow's"},
		{"not found", http.NotFound, "404"},
		{"empty", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }, "has no runs"},
		{"endless", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "longer than 64 MiB"},
	} {
		s := httptest.NewServer(c.answer)
		err := Fetch(t.Context(), Remote{Address: s.URL, Username: "ada", Password: "secret"}, reader.NewCollector())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", c.name, err)
		}
		s.Close()
	}
	for _, address := range []string{"", "mlruns", "file:///x", "http://", "ftp://host"} {
		if err := Fetch(t.Context(), Remote{Address: address}, reader.NewCollector()); err == nil {
			t.Errorf("%q was asked", address)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // the server looks for an end of the connection behind it
		cancel()
		<-r.Context().Done()
	}))
	defer s.Close()
	if err := Fetch(ctx, Remote{Address: s.URL}, reader.NewCollector()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if !IsAddress("https://host") || IsAddress("httpd/log") {
		t.Error("IsAddress")
	}
}

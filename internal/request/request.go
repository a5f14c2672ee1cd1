// Package request says of an HTTP request what pages, API and tools for agents must know alike
// before they answer: under which name it was sent, whether a page of another site made it, and
// what a part of its form is called.
package request

import (
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Loopback reports whether a host, with or without a port, is this machine and reached from
// nowhere else: a loopback address, or localhost. No name that somebody resolves to such an
// address (DNS rebinding) is.
func Loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && a.Unmap().IsLoopback()
}

// Foreign reports whether a browser says that a page from elsewhere made the request, links that
// a person followed among them. Stricter than http.CrossOriginProtection: an Origin is that of the
// page itself or foreign, null too, and reading is guarded as well. Programs send neither Origin
// nor Sec-Fetch-Site and are not foreign.
func Foreign(r *http.Request) bool {
	if OtherOrigin(r) {
		return true
	}
	return slices.ContainsFunc(r.Header["Sec-Fetch-Site"], func(site string) bool { return site != "" && site != "same-origin" && site != "none" })
}

// OtherOrigin reports whether a request has an Origin that is not the address it was sent to.
func OtherOrigin(r *http.Request) bool {
	o, sent := r.Header["Origin"]
	return sent && (len(o) != 1 || !strings.EqualFold(o[0], "http://"+r.Host))
}

// FileName is the name of a file in a form with its folders, separated by slashes: browsers and
// curl send them, and Part.FileName takes them off. It is "" for a field that is no file, and
// otherwise whatever was sent: who keeps the file checks it.
func FileName(p *multipart.Part) string {
	_, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(params["filename"], `\`, "/")
}

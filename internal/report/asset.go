package report

// Asset is a file of the HTML reports, by its name below assets ("page.css",
// "uplot/uPlot.iife.min.js"), for pages that frame a report and are to look like it. A name that
// is not there is a broken build.
func Asset(name string) string { return asset(name) }

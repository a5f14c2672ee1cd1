package incident

// BundleSchema is the name and version of the manifest of a bundle.
const BundleSchema = "inquest.bundle/v1"

// Whom a bundle is for.
const (
	ToOwner         = "owner"         // of the training's code, data and settings
	ToAdministrator = "administrator" // of the hosts, the scheduler, storage and network
	ToVendor        = "vendor"        // of the devices
)

// A Bundle is the manifest of what is handed on of an incident: what is in it, what was taken
// out of it, and what was left out. What was taken out is not in it.
type Bundle struct {
	Schema   string           `json:"schema"`
	Tool     Tool             `json:"tool"`
	Incident string           `json:"incident"` // id of the diagnosis
	Kept     string           `json:"kept"`     // id in the store that it comes from, "" where it comes from none
	Status   string           `json:"status"`
	To       []BundleReceiver `json:"to"`      // first the one who can do most
	Message  string           `json:"message"` // to be sent with it
	Contents []BundleFile     `json:"contents"`
	Removed  []BundleRemoved  `json:"removed"`
	LeftOut  []BundleLeftOut  `json:"left_out"`
	Check    BundleCheck      `json:"check"`
	Limits   []string         `json:"limits"` // what redaction cannot promise, and what could not be done
}

// A BundleReceiver is somebody who should have the bundle, and why.
type BundleReceiver struct {
	Who      string `json:"who"`
	Why      string `json:"why"`
	Standing string `json:"standing"` // of the cause on which that rests
}

// A BundleFile is a file of the bundle.
type BundleFile struct {
	Path   string `json:"path"`
	What   string `json:"what"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// A BundleRemoved is a kind of thing that was taken out.
type BundleRemoved struct {
	Kind  string `json:"kind"`  // secret, user, host, email, address, path, name, text
	Count int    `json:"count"` // places in the bundle's logs and records
	Names int    `json:"names"` // different ones; 0 for secrets, which are not told apart
	Token string `json:"token"` // what stands for the first of them
}

// A BundleLeftOut is an artifact that is not in the bundle.
type BundleLeftOut struct {
	Path string `json:"path"` // as it would be named in the bundle
	Size int64  `json:"size"`
	Why  string `json:"why"`
}

// A BundleCheck compares the diagnosis of the bundle with that of the originals.
type BundleCheck struct {
	Unchanged   bool     `json:"unchanged"`
	Differs     []string `json:"differs"`
	Fingerprint string   `json:"fingerprint"` // of the originals
	// Bundled is the fingerprint of the bundle's diagnosis. It is another where the first
	// fault's own words held something that was taken out, and nothing else differs.
	Bundled string `json:"bundled"`
}

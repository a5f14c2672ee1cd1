package report

// The parts of SARIF 2.1.0 (OASIS Standard, errata 01) that a diagnosis uses. Lists that the
// standard knows apart from their absence are pointers or never empty.

const (
	sarifSchema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	sarifVersion = "2.1.0"
)

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool               sarifTool                `json:"tool"`
	Invocations        []sarifInvocation        `json:"invocations"`
	AutomationDetails  sarifAutomation          `json:"automationDetails"`
	OriginalURIBaseIDs map[string]sarifArtifact `json:"originalUriBaseIds"`
	Artifacts          []sarifFile              `json:"artifacts,omitempty"`
	Results            []sarifResult            `json:"results"`
	ColumnKind         string                   `json:"columnKind"`
	Properties         map[string]any           `json:"properties"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	Version        string      `json:"version,omitempty"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
	Notifications  []sarifRule `json:"notifications"`
}

type sarifRule struct {
	ID                   string              `json:"id"`
	ShortDescription     *sarifText          `json:"shortDescription,omitempty"`
	FullDescription      *sarifText          `json:"fullDescription,omitempty"`
	Help                 *sarifText          `json:"help,omitempty"`
	DefaultConfiguration *sarifConfiguration `json:"defaultConfiguration,omitempty"`
	Properties           map[string]any      `json:"properties,omitempty"`
}

type sarifConfiguration struct {
	Level string `json:"level"`
}

type sarifText struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown,omitempty"`
}

type sarifAutomation struct {
	ID string `json:"id"`
}

type sarifInvocation struct {
	ExecutionSuccessful bool                `json:"executionSuccessful"`
	Notifications       []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	Descriptor sarifReference  `json:"descriptor"`
	Level      string          `json:"level"`
	Message    sarifText       `json:"message"`
	Locations  []sarifLocation `json:"locations,omitempty"`
}

type sarifReference struct {
	ID    string `json:"id"`
	Index int    `json:"index"`
}

type sarifResult struct {
	RuleID              string            `json:"ruleId"`
	RuleIndex           int               `json:"ruleIndex"`
	Kind                string            `json:"kind"`
	Level               string            `json:"level"`
	Message             sarifText         `json:"message"`
	Locations           []sarifLocation   `json:"locations,omitempty"`
	RelatedLocations    []sarifLocation   `json:"relatedLocations,omitempty"`
	CodeFlows           []sarifCodeFlow   `json:"codeFlows,omitempty"`
	PartialFingerprints map[string]string `json:"partialFingerprints,omitempty"`
	Properties          map[string]any    `json:"properties,omitempty"`
}

type sarifLocation struct {
	ID       int                `json:"id,omitempty"`
	Message  *sarifText         `json:"message,omitempty"`
	Physical *sarifPhysical     `json:"physicalLocation,omitempty"`
	Logical  []sarifLogical     `json:"logicalLocations,omitempty"`
	Other    map[string]float64 `json:"properties,omitempty"`
}

type sarifLogical struct {
	Name     string `json:"name"`
	FullName string `json:"fullyQualifiedName,omitempty"`
	Kind     string `json:"kind,omitempty"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI         string     `json:"uri,omitempty"`
	URIBaseID   string     `json:"uriBaseId,omitempty"`
	Description *sarifText `json:"description,omitempty"`
}

type sarifRegion struct {
	StartLine int64      `json:"startLine,omitempty"`
	Snippet   *sarifText `json:"snippet,omitempty"`
}

type sarifFile struct {
	Location   sarifArtifact     `json:"location"`
	Length     *int64            `json:"length,omitempty"`
	Hashes     map[string]string `json:"hashes,omitempty"`
	Roles      []string          `json:"roles"`
	Properties map[string]any    `json:"properties,omitempty"`
}

type sarifCodeFlow struct {
	Message     *sarifText        `json:"message,omitempty"`
	ThreadFlows []sarifThreadFlow `json:"threadFlows"`
}

type sarifThreadFlow struct {
	Locations []sarifStep `json:"locations"`
}

type sarifStep struct {
	Location   sarifLocation `json:"location"`
	Kinds      []string      `json:"kinds,omitempty"`
	Importance string        `json:"importance"`
}

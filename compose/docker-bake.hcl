# Builds our image for both architectures, with an SBOM and the provenance as attestations. Called
# by releasing/release.sh images, which sets the variables. The base image is the one of
# compose/management/Dockerfile.

variable "RELEASE" {}

variable "REVISION" {
  default = "unknown"
}

variable "SOURCE" {
  default = "unknown"
}

variable "REGISTRY" {
  default = "localhost"
}

group "default" {
  targets = ["holdfast"]
}

target "holdfast" {
  context    = "."
  dockerfile = "compose/management/Dockerfile"
  target     = "image"
  platforms  = ["linux/amd64", "linux/arm64"]
  tags       = ["${REGISTRY}/holdfast:${RELEASE}"]
  args = {
    RELEASE  = RELEASE
    REVISION = REVISION
    SOURCE   = SOURCE
  }
  attest = ["type=provenance,mode=max", "type=sbom"]
}

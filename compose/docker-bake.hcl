# Builds our image for both architectures: RELEASE=$(node -p "require('./package.json').version")
# docker buildx bake -f compose/docker-bake.hcl To be called in the root of the repository. A test
# holds the default of RELEASE equal to package.json.

variable "RELEASE" {
  default = "0.1.0"
}

variable "REVISION" {
  default = "unknown"
}

variable "BASE" {
  default = "node:24.21.0-bookworm-slim"
}

group "default" {
  targets = ["holdfast"]
}

target "holdfast" {
  context    = "."
  dockerfile = "compose/management/Dockerfile"
  target     = "image"
  platforms  = ["linux/amd64", "linux/arm64"]
  tags       = ["localhost/holdfast:${RELEASE}"]
  args = {
    BASE     = BASE
    RELEASE  = RELEASE
    REVISION = REVISION
  }
}

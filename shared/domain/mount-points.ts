// The mounts of a Linux machine, of the text of /proc/self/mountinfo, and on which of them a path lies.

export interface Mount {
  point: string;
  /** The kernel's word for the file system: ext4, overlay. */
  type: string;
}

/** In the kernel's order: of two at one point the later one is seen. */
export function mountsIn(mountinfo: string): Mount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const point = line.split(' ')[4];
    const type = / - (\S+) /.exec(line)?.[1] ?? '';
    return point === undefined ? [] : [{ point: unescapeOctal(point), type }];
  });
}

/** The deepest mount point above an absolute, resolved path; undefined when none is known. */
export function mountPointOf(path: string, mounts: readonly Mount[]): string | undefined {
  return mounts
    .map(({ point }) => point)
    .filter((point) => path === point || path.startsWith(point === '/' ? point : `${point}/`))
    .toSorted((one, other) => other.length - one.length)[0];
}

/** The kernel writes a space in a mount point as `\040`. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

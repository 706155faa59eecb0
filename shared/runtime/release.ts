// The release of this build, put in by scripts/build.ts.

declare const HOLDFAST_RELEASE: string | undefined;

export const RELEASE = typeof HOLDFAST_RELEASE === 'string' ? HOLDFAST_RELEASE : 'development';

// What packages/setup/build.ts puts into this build.

declare const HOLDFAST_RELEASE: string | undefined;
declare const HOLDFAST_THRESHOLDS: string | undefined;

export const RELEASE = typeof HOLDFAST_RELEASE === 'string' ? HOLDFAST_RELEASE : 'development';

/** The text of monitor/config/thresholds.yml if it said nothing but the defaults when this was built; else empty or undefined. */
export const SHIPPED_THRESHOLDS = typeof HOLDFAST_THRESHOLDS === 'string' ? HOLDFAST_THRESHOLDS : undefined;

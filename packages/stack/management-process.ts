// The management process as the supervisor starts it: it also tells the first measurement of every health module.

import { nodeProcess, type NodeProcessOptions } from './process/node-process.ts';
import type { ProcessSpec } from './process/supervised-process.ts';

/** What the process tells its supervisor once it listens. */
export interface MeasuredMessage {
  kind: 'measured';
  modules: MeasuredModule[];
}

/** One health module as the management process measured it first. */
export interface MeasuredModule {
  module: string;
  status: string;
  message: string;
}

export interface ManagementProcess extends ProcessSpec {
  /** Resolves when every health module was measured once. */
  measured: Promise<MeasuredModule[]>;
}

/** A mail that is on its way may take 15 seconds of an orderly stop. */
const STOP_WITHIN_MS = 18_000;

export function managementProcess(options: Omit<NodeProcessOptions, 'heard' | 'stopWithinMs'>): ManagementProcess {
  const { promise: measured, resolve: hasMeasured } = Promise.withResolvers<MeasuredModule[]>();
  const spec = nodeProcess('management', {
    ...options,
    stopWithinMs: STOP_WITHIN_MS,
    heard: (message) => hasMeasured((message as MeasuredMessage).modules),
  });
  return { ...spec, measured };
}

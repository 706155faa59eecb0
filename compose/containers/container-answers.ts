// What of a container engine's answers goes on to whoever reads the health of containers: these members and no others. Whatever
// an engine adds, and above all environments, commands and paths of the host, stays behind.

import { z } from 'zod';

/** Only by it does a container belong to a stack. */
export const PROJECT_LABEL = 'com.docker.compose.project';
const SERVICE_LABEL = 'com.docker.compose.service';

const labels = z.object({ [PROJECT_LABEL]: z.string().optional(), [SERVICE_LABEL]: z.string().optional() });

const network = z.object({
  Aliases: z.array(z.string()).nullish(),
  DNSNames: z.array(z.string()).nullish(),
  IPAddress: z.string().nullish(),
  GlobalIPv6Address: z.string().nullish(),
});

export const listAnswer = z.array(z.object({ Id: z.string(), Labels: labels.nullish() }));

export const containerAnswer = z.object({
  Id: z.string(),
  Name: z.string(),
  RestartCount: z.number().optional(),
  Config: z.object({ Image: z.string(), Hostname: z.string().nullish(), Labels: labels.nullish() }),
  Mounts: z.array(z.object({ Type: z.string(), Name: z.string().nullish(), Destination: z.string() })).nullish(),
  NetworkSettings: z.object({ Networks: z.record(z.string(), network.nullish()).nullish() }).nullish(),
  HostConfig: z.object({ RestartPolicy: z.object({ Name: z.string() }).nullish() }),
  State: z.object({
    Status: z.string(),
    ExitCode: z.number(),
    OOMKilled: z.boolean(),
    Health: z.object({ Status: z.string() }).nullish(),
  }),
});

type Labelled = { Labels?: z.infer<typeof labels> | null | undefined };

export function isOf(project: string, { Labels }: Labelled): boolean {
  return Labels?.[PROJECT_LABEL] === project;
}

// What the drill runs with: two dozen users over both channels, limits that hold some back for moments, and time limits
// short enough for a drill.
import { Buffer } from "node:buffer";

export const GROUPS = 24;
/** Every event reaches one user, over each of these. */
export const CHANNELS = ["email", "webhook"] as const;
const LEASE_MS = 2_000;

export function drillConfig(smtpUrl: string, webhookBase: string): object {
  const groups = Array.from({ length: GROUPS }, (_, group) => group);
  return {
    users: groups.map((group) => ({
      id: userOf(group),
      email: `${userOf(group)}@example.com`,
      webhook: { url: `${webhookBase}/${userOf(group)}`, secret: secretOf(group) },
    })),
    rules: groups.map((group) => ({
      name: `group-${group}`,
      when: { type: ["drill.tick"], data: { group: [`${group}`] } },
      to: { users: [userOf(group)] },
      channels: CHANNELS,
      template: "tick",
      overLimit: group % 8 === 0 ? "drop" : "defer",
    })),
    templates: {
      tick: {
        email: { subject: "tick {{ event.id }}", text: "Tick {{ event.id }} for {{ user.id }}." },
        webhook: { body: '{"tick":"{{ event.id }}"}' },
      },
    },
    limits: {
      perUser: { count: 20, perMs: 1_000 },
      concurrency: { email: 20, webhook: 20 },
      attemptTimeoutMs: 1_000,
      retryBaseMs: 100,
      retryMaxMs: 1_000,
      breaker: { failures: 5, cooldownMs: 500 },
      leaseMs: LEASE_MS,
    },
    providers: {
      email: { url: smtpUrl, from: "drill@example.com" },
      webhook: { allowPrivateNetworks: true },
    },
  };
}

function userOf(group: number): string {
  return `user-${String(group + 1).padStart(3, "0")}`;
}

function secretOf(group: number): string {
  return `whsec_${Buffer.from(`drill-secret-of-group-${group}`.padEnd(32, ".")).toString("base64")}`;
}

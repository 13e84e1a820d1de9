/**
 * Webhook addresses come from users, and must not lead into the network that the dispatcher runs in (server-side
 * request forgery). What counts is the address that is connected to, not a look at the name beforehand: a name may
 * lead elsewhere the next time it is asked for.
 */
import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";
import { SendError } from "./channel.ts";

/** Throws a permanent `SendError` for what is no web address or, if it is guarded, names an inner one. */
export function checkTarget(address: string, guarded: boolean): URL {
  const url = URL.parse(address);
  if (url === null) throw refusal(`not a URL: ${JSON.stringify(address)}`);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw refusal(`only http: and https: are called, not ${url.protocol}`);
  }
  if (url.username !== "" || url.password !== "") throw refusal("the URL must not hold a user or a password");
  // Node resolves no name that is an address already, so the lookup below never sees it.
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (guarded && isIP(host) !== 0) checkAddress(host);
  return url;
}

/** For `net.connect` and `tls.connect`: finds what `lookup` does, but fails if any of it is an inner address. */
export function guardedLookup(lookup: LookupFunction = systemLookup): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, "");
      const addresses = typeof found === "string" ? [{ address: found, family: isIP(found) }] : found;
      const [first] = addresses;
      try {
        if (first === undefined) throw refusal(`${hostname} has no address`);
        for (const { address } of addresses) checkAddress(address);
      } catch (refused) {
        return callback(refused as Error, "");
      }
      return options.all === true ? callback(null, [...addresses]) : callback(null, first.address, first.family);
    });
  };
}

function checkAddress(address: string): void {
  if (!isPublic(address)) throw refusal(`${address} is not a public address`);
}

/** Whether packets to it leave for the internet: not loopback, private, link-local, shared, multicast, mapped … */
export function isPublic(address: string): boolean {
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.parse(address);
  // IPv6 is handed out of 2000::/3 alone; the rest is reserved, or another way to write an IPv4 address.
  return parsed.range() === "unicast" && (parsed.kind() === "ipv4" || parsed.match(GLOBAL_UNICAST));
}

const GLOBAL_UNICAST = ipaddr.parseCIDR("2000::/3");

function refusal(why: string): SendError {
  return new SendError(why, { kind: "permanent", providerFault: false });
}

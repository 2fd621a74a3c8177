import ipaddr from 'ipaddr.js'

/** The IPv4 address, even if mapped to IPv6; for IPv6 the /64, all of which one client has. */
export function network(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}

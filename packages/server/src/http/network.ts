import ipaddr from 'ipaddr.js'

/** An IPv4 address, including one mapped to IPv6 (as on `::`); for IPv6, the /64 that one client has. */
export function network(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}

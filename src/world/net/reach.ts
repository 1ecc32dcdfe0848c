/**
 * Where connections to other machines may lead: what DNS of strangers, or a URL they gave, must not make this server do.
 *
 * Asked by whatever dials, for every address and right before it is dialled, so that no caller can forget to and no look-up
 * in between can change the answer. What the operator named is asked for with `namedBy: 'operator'` and may be anywhere.
 * Fails: never; `assertWithin` throws the error a connection would fail with, code `EADDRNOTPUBLIC`.
 */
import { addressKind } from './address-kind.js'
import { NetworkList } from './ip-address.js'

export interface Reach {
  /** @returns why the address is not dialled, one phrase that completes "the address ..."; undefined where it may be */
  refusal(address: string): string | undefined
}

/** Who said that this host be called. Absent: somebody else did, in DNS or in a request. */
export interface Named {
  readonly namedBy?: 'operator'
}

/** Hosts of the public Internet only. */
export const PUBLIC_REACH: Reach = {
  refusal(address) {
    const kind = addressKind(address)
    return kind === 'public' ? undefined : phrase(kind)
  },
}

/** For networks with servers of their own, this machine included; nothing that is no host at all. */
export const PRIVATE_REACH: Reach = {
  refusal(address) {
    const kind = addressKind(address)
    return kind === 'multicast' || kind === 'invalid' ? phrase(kind) : undefined
  },
}

/**
 * The public Internet, and those networks close by that the operator lists. An address that carries another one (NAT64, 6to4) is in a
 * network only where the operator lists it as it is written: what stands at its far end is not ours to know.
 *
 * @param networks in CIDR notation
 */
export function openReachWith(networks: readonly string[]): Reach {
  const listed = new NetworkList(networks)
  return {
    refusal: address =>
      PRIVATE_REACH.refusal(address) ??
      (listed.contains(address) ? undefined : PUBLIC_REACH.refusal(address)),
  }
}

/** @param allowPrivate whether networks close by are the operator's own, and DNS speaks for them */
export function openReach({ allowPrivate }: { readonly allowPrivate: boolean }): Reach {
  return allowPrivate ? PRIVATE_REACH : PUBLIC_REACH
}

/** @throws Error with code EADDRNOTPUBLIC */
export function assertWithin(reach: Reach, { namedBy }: Named, address: string): void {
  const refusal = namedBy === 'operator' ? undefined : reach.refusal(address)
  if (refusal === undefined) return
  throw Object.assign(new Error(`the address ${address} ${refusal}`), { code: 'EADDRNOTPUBLIC' })
}

function phrase(kind: string): string {
  return kind === 'invalid' ? 'is none' : `is not public (${kind})`
}

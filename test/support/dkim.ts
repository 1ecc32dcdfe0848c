/** Checks DKIM signatures with mailauth against the records that the API lists for publication. */
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'

/** The part of a domain, as the API and `domain add --json` show it, that is needed here. */
export interface PublishedDomain {
  readonly dns_records: readonly {
    readonly alternative?: { readonly name: string; readonly value: string }
  }[]
}

/** The TXT records of its DKIM keys, by name. */
export function dkimZone({ dns_records: records }: PublishedDomain): Map<string, string> {
  return new Map(
    records.flatMap(({ alternative }) =>
      alternative ? [[alternative.name, alternative.value] as const] : [],
    ),
  )
}

/** One entry per signature, e.g. `example.com rsa-sha256 pass`. */
export async function dkimVerdicts(raw: Buffer, zone: ReadonlyMap<string, string>): Promise<string[]> {
  const { results } = await dkimVerify(raw, {
    resolver: async (name: string, type: string): Promise<string[][]> => {
      const record = type === 'TXT' ? zone.get(name) : undefined
      if (record === undefined) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
      return [[record]]
    },
  })
  // Its type declarations leave out the algorithm.
  const signatures = results as { status: { result: string }; signingDomain?: string; algo?: string }[]
  return signatures.map(
    ({ status, signingDomain, algo }) => `${signingDomain ?? ''} ${algo ?? ''} ${status.result}`,
  )
}

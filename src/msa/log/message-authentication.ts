/**
 * How receivers judge who a message is from: its DKIM signatures, SPF of its envelope sender, and whether either is aligned with From,
 * as DMARC asks.
 *
 * The message is composed and signed again with the keys of today, and DNS is asked now; what a receiver found earlier may have differed.
 * Signatures of the author of relayed mail are not verified, only their keys are looked up. Never delivers anything.
 * Standards: RFC 6376 (DKIM), RFC 7208 (SPF), RFC 7489 (DMARC).
 */
import { createPublicKey } from 'node:crypto'
import Type, { type Static } from 'typebox'
import {
  ALIGNMENT_MODES,
  DMARC_POLICIES,
  isAligned,
  policyOf,
  walkDmarc,
  type AlignmentMode,
  type DmarcWalk,
} from '../../deliverability/domains/dmarc.js'
import { evaluateSpf, SPF_VERDICTS } from '../../deliverability/domains/spf.js'
import { orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { addressDomain, asciiDomain } from '../../mail/address.js'
import { parseDkimRecord, publicKeyText, recordMatchesKey } from '../../mail/dkim/dkim-record.js'
import type { DkimKey } from '../../mail/dkim/dkim-sign.js'
import { readMailContent } from '../../mail/mime/mail-content.js'
import type { Resolver } from '../../world/dns/dns.js'
import type { ComposedMessage } from './message-source.js'

const SignatureSchema = Type.Object({
  domain: Type.String({ description: 'The signing domain, d=.' }),
  selector: Type.String({ description: 's=; the key is published at <selector>._domainkey.<domain>.' }),
  algorithm: Type.String({ description: 'a=, e.g. rsa-sha256.' }),
  signer: Type.Enum(['appliance', 'author'], {
    description: '`author`: the message came in by SMTP with this signature.',
  }),
  key: Type.Enum(['published', 'different', 'revoked', 'missing', 'unanswered'], {
    description:
      'What DNS says of the key now. `different`: another key, with which the signature fails. `unanswered`: name servers are silent.',
  }),
  result: Type.Enum(['pass', 'fail', 'unknown'], {
    description: '`unknown`: no answer from DNS, or a signature of the author, which is not verified here.',
  }),
  aligned: Type.Boolean({ description: 'Whether d= is aligned with the domain of From.' }),
})

export const MessageAuthenticationSchema = Type.Object(
  {
    from_domain: Type.String({ description: 'Domain of From, which DMARC is about.' }),
    dkim: Type.Array(SignatureSchema, { description: 'From the top; empty: the message is not signed.' }),
    spf: Type.Object({
      domain: Type.String({ description: 'Domain of the envelope sender, or of EHLO for mail from <>.' }),
      aligned: Type.Boolean(),
      checks: Type.Array(
        Type.Object({
          address: Type.String(),
          result: Type.Enum([...SPF_VERDICTS]),
          term: TextOrNull({ description: 'The term of the record that decided, e.g. -all.' }),
          reason: TextOrNull({ description: 'Why there is no verdict on the address.' }),
        }),
        { description: 'For each address that mail leaves from; empty if they are not known.' },
      ),
    }),
    dmarc: Type.Object({
      result: Type.Enum(['pass', 'fail', 'none', 'unknown'], {
        description:
          '`pass`: an aligned signature or an aligned SPF passes. `none`: the domain has no DMARC record. `unknown`: depends on facts that are not known here.',
      }),
      domain: TextOrNull({ description: 'Domain whose record applies: that of From, or one above it.' }),
      record: TextOrNull({ description: 'As published.' }),
      policy: orNull(Type.Enum([...DMARC_POLICIES]), {
        description: 'What the domain asks receivers to do with mail that fails.',
      }),
      dkim_alignment: Type.Enum([...ALIGNMENT_MODES], {
        description: '`strict`: the same domain; `relaxed`: domains of the same organization.',
      }),
      spf_alignment: Type.Enum([...ALIGNMENT_MODES]),
    }),
  },
  { title: 'MessageAuthentication' },
)
export type MessageAuthentication = Static<typeof MessageAuthenticationSchema>
type Signature = MessageAuthentication['dkim'][number]

export interface AuthenticationParts {
  readonly freshResolver: () => Resolver
  readonly hostname: string
  /** Public addresses that mail of a workspace leaves from, as far as they are known. */
  readonly sendingAddresses: (workspaceId: string) => Promise<readonly string[]>
}

/** More are not looked up. */
const MAX_SIGNATURES = 10

export async function judgeMessage(
  { freshResolver, hostname, sendingAddresses }: AuthenticationParts,
  { octets, job }: ComposedMessage,
  fromAddress: string,
): Promise<MessageAuthentication> {
  const dns = remembering(freshResolver())
  const author = await walkDmarc(domainOf(fromAddress), dns)
  const record = author.found?.record
  const modes = { dkim: record?.dkim ?? 'relaxed', spf: record?.spf ?? 'relaxed' } as const
  const dkim = await Promise.all(
    signaturesOf(octets).map(fields => judgeSignature(fields, job.signingKeys, author, modes.dkim, dns)),
  )
  const spfDomain = job.envelopeSender === '' ? hostname : domainOf(job.envelopeSender)
  const addresses = await sendingAddresses(job.workspaceId)
  const spf = {
    domain: spfDomain,
    aligned: await isAligned(author, spfDomain, modes.spf, dns),
    checks: await Promise.all(
      addresses.map(async address => {
        const sender = job.envelopeSender === '' ? undefined : job.envelopeSender
        const query = { address, domain: spfDomain, hello: hostname }
        const found = await evaluateSpf(sender === undefined ? query : { ...query, sender }, dns)
        return { address, result: found.verdict, term: found.term ?? null, reason: found.reason ?? null }
      }),
    ),
  }
  return {
    from_domain: author.domain,
    dkim,
    spf,
    dmarc: {
      result: dmarcResult(author, dkim, spf),
      domain: author.found?.domain ?? null,
      record: record?.text ?? null,
      policy: policyOf(author) ?? null,
      dkim_alignment: modes.dkim,
      spf_alignment: modes.spf,
    },
  }
}

function dmarcResult(
  author: DmarcWalk,
  dkim: readonly Signature[],
  { aligned, checks }: MessageAuthentication['spf'],
): MessageAuthentication['dmarc']['result'] {
  if (!author.found) return author.isUncertain ? 'unknown' : 'none'
  const signatures = dkim.filter(one => one.aligned).map(({ result }) => result)
  const isSpfPassed = aligned && checks.length > 0 && checks.every(({ result }) => result === 'pass')
  if (isSpfPassed || signatures.includes('pass')) return 'pass'
  const isSpfOpen =
    aligned && (checks.length === 0 || checks.some(({ result }) => ['pass', 'temperror'].includes(result)))
  return isSpfOpen || signatures.includes('unknown') ? 'unknown' : 'fail'
}

interface SignatureFields {
  readonly domain: string
  readonly selector: string
  readonly algorithm: string
}

function signaturesOf(message: Buffer): SignatureFields[] {
  return readMailContent(message)
    .headers.filter(({ name }) => name.toLowerCase() === 'dkim-signature')
    .slice(0, MAX_SIGNATURES)
    .flatMap(({ value }) => {
      const tag = (name: string) =>
        new RegExp(`(?:^|;)\\s*${name}\\s*=\\s*([^;]{1,255})`).exec(value)?.[1]?.replace(/\s+/g, '') ?? ''
      const domain = asciiDomain(tag('d').toLowerCase())
      return domain === undefined
        ? []
        : [{ domain, selector: tag('s').slice(0, 63), algorithm: tag('a').slice(0, 63) }]
    })
}

async function judgeSignature(
  fields: SignatureFields,
  ours: readonly DkimKey[],
  author: DmarcWalk,
  mode: AlignmentMode,
  dns: Resolver,
): Promise<Signature> {
  const own = ours.find(key => key.domain === fields.domain && key.selector === fields.selector)
  const key = await findKey(fields, own, dns)
  const isFailed = key === 'different' || key === 'revoked' || key === 'missing'
  return {
    ...fields,
    signer: own ? 'appliance' : 'author',
    key,
    result: isFailed ? 'fail' : own && key === 'published' ? 'pass' : 'unknown',
    aligned: await isAligned(author, fields.domain, mode, dns),
  }
}

async function findKey(
  { domain, selector }: SignatureFields,
  own: DkimKey | undefined,
  dns: Resolver,
): Promise<Signature['key']> {
  const answer = await dns.txt(`${selector}._domainkey.${domain}`)
  if (answer.kind === 'unavailable') return 'unanswered'
  const records = answer.kind === 'found' ? answer.records : []
  const keys = records.flatMap(text => parseDkimRecord(text) ?? [])
  if (keys.length === 0) return 'missing'
  if (keys.every(({ publicKey }) => publicKey === '')) return 'revoked'
  if (!own) return 'published'
  const expected = publicKeyText(createPublicKey(own.privateKey))
  return records.some(text => recordMatchesKey(text, expected)) ? 'published' : 'different'
}

function domainOf(address: string): string {
  const domain = addressDomain(address).toLowerCase()
  return asciiDomain(domain) ?? domain
}

/** Several checks ask for the same records. */
function remembering(dns: Resolver): Resolver {
  const known = new Map<string, ReturnType<Resolver['txt']>>()
  const txt = (name: string) => {
    const found = known.get(name) ?? dns.txt(name)
    known.set(name, found)
    return found
  }
  return {
    txt,
    mx: name => dns.mx(name),
    ipv4: name => dns.ipv4(name),
    ipv6: name => dns.ipv6(name),
    cname: name => dns.cname(name),
    ns: name => dns.ns(name),
    ptr: name => dns.ptr(name),
  }
}

/**
 * Generates example values for the API description from schemas: by sample (`samples.ts`), else by the field's name and description.
 *
 * Pure. An example matches its schema, patterns aside; a route whose requests obey rules beyond the schema provides its own.
 */
import type { TSchema } from 'typebox'
import { IDS } from './sample-records.js'
import { SAMPLES } from './samples.js'

/** The parts of a JSON Schema used here. */
interface Schema {
  readonly title?: string
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly default?: unknown
  readonly description?: string
  readonly format?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
}

const ID = IDS.other
const MOMENT = '2026-01-05T10:00:00.000Z'

const BY_NAME: Readonly<Record<string, string>> = {
  to: 'ann@example.com',
  email: 'ann@example.com',
  contact_email: 'ann@example.com',
  recipient: 'ann@example.com',
  from_email: 'shop@example.com',
  reply_to: 'help@example.com',
  subject: 'Your order',
  html: '<p>Thank you for your order.</p>',
  text: 'Thank you for your order.',
  domain: 'example.com',
  name: 'Shop',
  from_name: 'Shop',
  preheader: 'Coats and boots, until Sunday.',
  company_name: 'Shop Ltd',
  currency: 'EUR',
  product_id: 'jug-1',
  product_name: 'Blue jug',
  category: 'Kitchen',
  product_url: 'https://shop.example.com/jug',
  image_url: 'https://shop.example.com/jug.png',
  url: 'https://shop.example.com/',
  targetUrl: 'https://shop.example.com/hooks',
  event: 'email.delivered',
  action: 'domain.added',
  color: '#3366cc',
  version: '0.1.0',
  smtp_status: '5.1.1',
  diagnostic_code: 'smtp; 550 5.1.1 No such mailbox',
  remote_mta: 'mx.example.com',
  default_from_email: 'shop@example.com',
  default_from_name: 'Shop',
  company_address: '1 High Street, Springfield',
  timezone: 'Europe/Berlin',
  brand_color: '#1d5fa8',
  utm_source: 'newsletter',
  utm_medium: 'email',
  utm_campaign: 'spring',
  peer: '192.0.2.7',
  address: '192.0.2.7',
  password: 'correct horse battery',
  code: '492039',
  secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
  n: '2',
  destination: 'example.net',
  site: 'mx.example.net',
  last_reply: '451 4.7.1 Greylisted, try again later',
  reply: '451 4.7.1 Greylisted, try again later',
  from_domain: 'example.com',
  selector: 'pr1',
  record: 'v=DMARC1; p=none',
  reason: 'no name server answered',
  lease: 'jobs',
  schedule: '30 3 * * *',
  last_error: 'the disk is full',
  isp_name: 'Gmail',
  location: 'https://mail.example.com/console/',
  batchId: ID,
  messageId: ID,
}

const BY_FORMAT: Readonly<Record<string, string>> = { uuid: ID, 'date-time': MOMENT }

/** Booleans that are rarely true. */
const UNUSUAL = /^(is_)?(sandbox|bot)$|^vouched$|^has_more$/

/** Optional fields shown in example requests. */
const WORTH_SHOWING: ReadonlySet<string> = new Set(['html', 'currency', 'product_name', 'description'])

/**
 * @param isRequest omits most optional fields
 * @param name of the field with this schema, if any
 */
export function exampleOf(schema: TSchema, isRequest: boolean, name = ''): unknown {
  return valueOf(schema, name, isRequest)
}

/** An example response, in which the fields of the request are echoed. */
export function answerExample(schema: TSchema, request: unknown): unknown {
  const answer = exampleOf(schema, false)
  return isFields(answer) && isFields(request) ? { ...answer, data: echo(answer['data'], request) } : answer
}

function echo(answer: unknown, request: Readonly<Record<string, unknown>>): unknown {
  if (Array.isArray(answer) || !isFields(answer)) return answer
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => {
      const given = request[name]
      return [name, given !== undefined && typeof given === typeof value ? given : value]
    }),
  )
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function valueOf(schema: Schema, name: string, isRequest: boolean): unknown {
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf) {
    const [first = {}] = schema.anyOf
    return valueOf(
      { ...(schema.description ? { description: schema.description } : {}), ...first },
      name,
      isRequest,
    )
  }
  switch (schema.type) {
    case 'object':
      return objectOf(schema, isRequest)
    case 'array':
      return schema.items ? [valueOf(schema.items, name.replace(/s$/, ''), isRequest)] : []
    case 'string':
      return textOf(schema, name)
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 1, Math.min(1, schema.maximum ?? 1))
    case 'boolean':
      return !UNUSUAL.test(name)
    case 'null':
      return null
    default:
      return {}
  }
}

function objectOf({ title = '', properties = {}, required = [] }: Schema, isRequest: boolean): object {
  const sample = Object.hasOwn(SAMPLES, title) ? SAMPLES[title] : undefined
  const isShown = (name: string) =>
    !isRequest || required.includes(name) || (sample ? Object.hasOwn(sample, name) : WORTH_SHOWING.has(name))
  const shown: [string, unknown][] = Object.entries(properties)
    .filter(([name]) => isShown(name))
    .map(([name, field]) => [
      name,
      sample && Object.hasOwn(sample, name) ? sample[name] : valueOf(field, name, isRequest),
    ])
  return Object.fromEntries(shown.filter(([, value]) => value !== undefined))
}

function textOf(schema: Schema, name: string): string {
  const text =
    BY_FORMAT[schema.format ?? ''] ??
    BY_NAME[name] ??
    textFromDescription(schema.description) ??
    textFromName(name)
  const long = text.padEnd(schema.minLength ?? 0, 'x')
  return schema.maxLength === undefined ? long : long.slice(0, schema.maxLength)
}

function textFromName(name: string): string {
  if (/(^|_)ids?$|Id$/.test(name)) return ID
  return /_at$|^(since|until|timestamp)$/.test(name) ? MOMENT : 'text'
}

/** The first value of a description such as `pending, verified or failed.`, or the one after `e.g.` */
function textFromDescription(description = ''): string | undefined {
  return (
    /(?:^|: )`?([\w.]+)`?(?:, `?[\w.]+`?)* or `?[\w.]+`?/.exec(description)?.[1] ??
    /\be\.g\. `?([\w.:/@+-]*\w)/.exec(description)?.[1]
  )
}

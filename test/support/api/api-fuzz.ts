/**
 * Requests that no client should send, made from what an operation takes: its example with fields of the wrong kind, missing,
 * too many or too much, and bodies that are no JSON at all. The same seed makes the same requests.
 */
import type { SeededRandom } from '../../../src/world/fake-random.js'
import { pathWith, usualRequest, type ApiRequest, type FieldSchema, type Operation } from './api-document.js'

const ODD_TEXTS = [
  '',
  ' ',
  'x'.repeat(5_000),
  '\u0000',
  'a\u0000b@example.com',
  '\ud800',
  '\u202eabc\u2066',
  '😀'.repeat(300),
  'Ünïcode@Bücher.example',
  'a\r\nBcc: eve@example.com',
  "' or 1=1 --",
  '%',
  '%00',
  '../../etc/passwd',
  '<script>alert(1)</script>',
  '{{#each x}}{{this',
  '@',
  '@example.com',
  'a@[127.0.0.1]',
  '"quoted local"@example.com',
  `${'a'.repeat(64)}@${'b'.repeat(63)}.${'c'.repeat(63)}.example`,
  'ann@xn--0.example',
  '2026-13-45T99:99:99Z',
  '9999-12-31T23:59:59Z',
  '1e999',
  '-1',
  '9007199254740993',
  '0192f3a4-5b6c-7d8e-9f01-23456789abcd',
  'javascript:alert(1)',
  'http://[::1',
]

/** Stands for what is nested too deep for a test to write it as JSON: see `deepened`. */
const DEEP = 'much deeper than any request needs'

const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  -0,
  0.5,
  1e308,
  -1e308,
  9_007_199_254_740_992,
  [],
  {},
  [null],
  [[[]]],
  { constructor: { prototype: 1 } },
  Array.from({ length: 2_000 }, () => 'x'),
  DEEP,
  ...ODD_TEXTS,
]

/** Written by hand, since no value has these as its JSON. */
const BROKEN_BODIES: readonly (string | Uint8Array)[] = [
  '',
  ' ',
  '{',
  '{"a":',
  'null',
  'NaN',
  '"text"',
  '[1,2',
  '{"a":1}}',
  "{'a':1}",
  '{"__proto__":{"x":1}}',
  '{"to":1,"to":2}',
  '\ufeff{}',
  '['.repeat(100_000),
  `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`,
  '1'.repeat(10_000),
  new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]),
  new Uint8Array([0x1f, 0x8b, 0x08, 0x00]),
]

const CONTENT_TYPES = [
  'application/json',
  'application/json; charset=utf-16',
  'text/plain',
  'text/csv',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'nonsense',
]

export class RequestFuzz {
  private readonly random: SeededRandom

  constructor(random: SeededRandom) {
    this.random = random
  }

  ask(operation: Operation, key: string): ApiRequest {
    const usual = usualRequest(operation, () => 'x', key)
    const headers: Record<string, string> = { ...usual.headers }
    for (const name of Object.keys(headers).filter(name => name !== 'Content-Type'))
      headers[name] = this.pick(['', 'k', `k${this.number(1e9)}`, 'x'.repeat(300)])
    if (this.chance(0.2)) headers['Content-Type'] = this.pick(CONTENT_TYPES)
    if (this.chance(0.02)) headers['Content-Encoding'] = 'gzip'
    return {
      ...usual,
      headers,
      path: this.path(operation) + this.query(operation),
      ...(operation.body ? { body: this.body(operation.body) } : {}),
      ...(operation.file ? { body: this.file(operation.file) } : {}),
    }
  }

  private path(operation: Operation): string {
    // Dots alone would lead to another path, nothing at all to the list above it.
    const values = ODD_TEXTS.filter(text => text.trim() !== '' && text !== '\ud800')
    const path = pathWith(operation, () => this.pick(values))
    // Behind another name it would be no path of the API at all.
    return /[}]$/.test(operation.path) && this.chance(0.05) ? `${path}%zz` : path
  }

  private query(operation: Operation): string {
    const query = new URLSearchParams()
    for (const { name, in: place } of operation.parameters)
      if (place === 'query' && this.chance(0.5)) query.append(name, this.pick(ODD_TEXTS))
    if (this.chance(0.1)) query.append('unknown', 'x')
    const [first] = query.keys()
    if (first !== undefined && this.chance(0.1)) query.append(first, 'again')
    return query.size === 0 ? '' : `?${query.toString()}`
  }

  private body({ schema, example }: { schema: FieldSchema; example: unknown }): string | Uint8Array {
    if (this.chance(0.15)) return this.pick(BROKEN_BODIES)
    if (this.chance(0.05)) return deepened(JSON.stringify(this.pick(ODD_VALUES)))
    const body = structuredClone(example)
    for (let changes = 1 + this.number(3); changes > 0; changes -= 1) this.change(body, schema)
    return deepened(JSON.stringify(body))
  }

  private file({ example }: { example: string }): string | Uint8Array {
    if (this.chance(0.3)) return this.pick(BROKEN_BODIES)
    const lines = example.split('\n')
    lines.splice(this.number(lines.length), this.number(2), this.pick(ODD_TEXTS))
    return lines.join('\n')
  }

  /** Changes one field, known by the schema whether or not the example has it, at any depth. */
  private change(value: unknown, schema: FieldSchema): void {
    if (typeof value !== 'object' || value === null) return
    const fields = value as Record<string, unknown>
    const properties = schema.properties ?? {}
    const name = this.pick([...Object.keys(properties), ...Object.keys(fields), 'unknown'])
    const field = properties[name] ?? schema.items ?? {}
    const inner = [field, ...(field.anyOf ?? [])].find(one => one.properties ?? one.items)
    if (inner && typeof fields[name] === 'object' && this.chance(0.6)) this.change(fields[name], inner)
    else if (this.chance(0.15)) Reflect.deleteProperty(fields, name)
    else fields[name] = this.pick(ODD_VALUES)
  }

  private pick<T>(from: readonly T[]): T {
    return from[this.number(from.length)] as T
  }

  private number(below: number): number {
    return Math.floor(this.random.fraction() * below)
  }

  private chance(of: number): boolean {
    return this.random.fraction() < of
  }
}

function deepened(json: string): string {
  const levels = 8_000
  return json.replace(JSON.stringify(DEEP), () => '[{"a":'.repeat(levels) + '1' + '}]'.repeat(levels))
}

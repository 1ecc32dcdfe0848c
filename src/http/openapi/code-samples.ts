/**
 * Writes an API request as a program: curl, Node, Python, PHP and Go.
 *
 * Used by the reference for the samples it shows, and by its script when a reader edits a request; so it depends on nothing. The tests run
 * what it writes. Programs read the key from the environment, which keeps it out of files and shell history. Pure.
 */

export const LANGUAGES = {
  curl: 'curl',
  node: 'Node',
  python: 'Python',
  php: 'PHP',
  go: 'Go',
} as const

export type Language = keyof typeof LANGUAGES

/** A parameter or header field of an operation. */
export interface CallParameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly isRequired: boolean
  readonly example?: string
  /** Values to choose from, if only these are valid. */
  readonly choices?: readonly string[]
}

/** An operation as it can be called. */
export interface Callable {
  readonly method: string
  /** Below the base URL, parameters as `{name}`. */
  readonly path: string
  readonly isOpen: boolean
  readonly parameters: readonly CallParameter[]
  readonly body?: { readonly type: string; readonly isRequired: boolean; readonly example: unknown }
}

/** A request with all values filled in. */
export interface Call {
  readonly method: string
  readonly url: string
  /** Environment variable that holds the bearer token. */
  readonly token?: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body?: { readonly json: unknown } | { readonly file: string; readonly type: string }
}

const IDEMPOTENCY_KEY = 'Idempotency-Key'

/**
 * Fills in the values of an operation's parameters.
 *
 * @param values by parameter name; without them path parameters, and others that are required, have their examples
 */
export function callOf(
  { base, token }: { readonly base: string; readonly token: string },
  { method, path, isOpen, parameters, body }: Callable,
  values?: Readonly<Record<string, string>>,
): Call {
  const valueOf = ({ name, in: place, isRequired, example }: CallParameter) =>
    values ? (values[name] ?? '') : isRequired || place === 'path' ? (example ?? usualValue(name)) : ''
  const given = (place: CallParameter['in']) =>
    parameters
      .filter(one => one.in === place)
      .map(one => [one.name, valueOf(one)] as const)
      .filter(([, value]) => value !== '')
  const filled = given('path').reduce(
    (text, [name, value]) => text.replace(`{${name}}`, () => encodeURIComponent(value)),
    path,
  )
  const query = given('query').map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  const content =
    body &&
    (typeof body.example === 'string'
      ? { file: fileName(path, body.type), type: body.type }
      : { json: body.example })
  return {
    method: method.toUpperCase(),
    url: base + filled + (query.length > 0 ? `?${query.join('&')}` : ''),
    ...(isOpen ? {} : { token }),
    headers: given('header'),
    ...(content ? { body: content } : {}),
  }
}

function usualValue(name: string): string {
  return name === IDEMPOTENCY_KEY ? 'order-1042' : 'VALUE'
}

/** E.g. `contacts.csv` for an upload to `/contacts/import`. */
function fileName(path: string, type: string): string {
  const image = /^image\/(\w+)$/.exec(type)?.[1]
  const extension = image ?? (/csv/.test(type) ? 'csv' : /json/.test(type) ? 'json' : 'txt')
  return `${path.split('/')[1] ?? 'file'}.${extension}`
}

export function codeSample(language: Language, call: Call): string {
  switch (language) {
    case 'curl':
      return curl(call)
    case 'node':
      return node(call)
    case 'python':
      return python(call)
    case 'php':
      return php(call)
    case 'go':
      return go(call)
  }
}

function curl({ method, url, token, headers, body }: Call): string {
  const usual = body ? 'POST' : 'GET'
  return [
    `curl${method === usual ? '' : ` -X ${method}`} ${shell(url)}`,
    ...(token === undefined ? [] : [`-H "Authorization: Bearer $${token}"`]),
    ...headers.map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`),
    ...(body ? [`-H ${shell(`Content-Type: ${contentType(body)}`)}`] : []),
    ...(body ? ['json' in body ? `-d ${shell(pretty(body.json))}` : `--data-binary @${body.file}`] : []),
  ].join(' \\\n  ')
}

function node({ method, url, token, headers, body }: Call): string {
  const fields = [
    ...(token === undefined ? [] : [`Authorization: \`Bearer \${process.env.${token}}\``]),
    ...allHeaders(headers, body).map(([name, value]) => `${jsName(name)}: ${jsText(value)}`),
  ]
  const options = [
    ...(method === 'GET' ? [] : [`method: ${jsText(method)},`]),
    ...(fields.length > 0 ? ['headers: {', ...fields.map(field => `  ${field},`), '},'] : []),
    ...(body
      ? 'json' in body
        ? [`body: JSON.stringify(${indented(jsLiteral(body.json), 1)}),`]
        : [`body: await readFile(${jsText(body.file)}),`]
      : []),
  ]
  return [
    ...(body && 'file' in body ? ["import { readFile } from 'node:fs/promises'\n"] : []),
    options.length > 0
      ? `const response = await fetch(${jsText(url)}, {\n${options.map(line => `  ${line}\n`).join('')}})`
      : `const response = await fetch(${jsText(url)})`,
    'console.log(response.status, await response.text())',
  ].join('\n')
}

function python({ method, url, token, headers, body }: Call): string {
  const fields = [
    ...(token === undefined ? [] : [`"Authorization": f"Bearer {os.environ['${token}']}"`]),
    ...allHeaders(headers, body).map(([name, value]) => `${pyText(name)}: ${pyText(value)}`),
  ]
  const isJson = body !== undefined && 'json' in body
  const modules = [isJson ? 'json' : '', token === undefined ? '' : 'os', 'urllib.request'].filter(Boolean)
  return [
    ...modules.map(name => `import ${name}`),
    '',
    'request = urllib.request.Request(',
    `    ${pyText(url)},`,
    ...(method === 'GET' ? [] : [`    method=${pyText(method)},`]),
    ...(fields.length > 0 ? ['    headers={', ...fields.map(field => `        ${field},`), '    },'] : []),
    ...(body
      ? 'json' in body
        ? [`    data=json.dumps(${indented(pyLiteral(body.json), 2)}).encode(),`]
        : [`    data=open(${pyText(body.file)}, "rb").read(),`]
      : []),
    ')',
    'with urllib.request.urlopen(request) as response:',
    '    print(response.status, response.read().decode())',
  ].join('\n')
}

function php({ method, url, token, headers, body }: Call): string {
  const fields = [
    ...(token === undefined ? [] : [`'Authorization: Bearer ' . getenv('${token}')`]),
    ...allHeaders(headers, body).map(([name, value]) => phpText(`${name}: ${value}`)),
  ]
  return [
    '<?php',
    `$curl = curl_init(${phpText(url)});`,
    'curl_setopt_array($curl, [',
    ...(method === 'GET' ? [] : [`    CURLOPT_CUSTOMREQUEST => ${phpText(method)},`]),
    ...(fields.length > 0
      ? ['    CURLOPT_HTTPHEADER => [', ...fields.map(field => `        ${field},`), '    ],']
      : []),
    ...(body
      ? 'json' in body
        ? [`    CURLOPT_POSTFIELDS => json_encode(${indented(phpLiteral(body.json), 2)}),`]
        : [`    CURLOPT_POSTFIELDS => file_get_contents(${phpText(body.file)}),`]
      : []),
    '    CURLOPT_RETURNTRANSFER => true,',
    ']);',
    '$body = curl_exec($curl);',
    'echo curl_getinfo($curl, CURLINFO_RESPONSE_CODE), " $body\\n";',
  ].join('\n')
}

function go({ method, url, token, headers, body }: Call): string {
  const isJson = body !== undefined && 'json' in body
  const modules = [
    'fmt',
    'io',
    'net/http',
    token !== undefined || (body && !isJson) ? 'os' : '',
    isJson ? 'strings' : '',
  ]
  const failure = ['\tif err != nil {', '\t\tpanic(err)', '\t}']
  return [
    'package main',
    '',
    'import (',
    ...modules.filter(Boolean).map(name => `\t"${name}"`),
    ')',
    '',
    'func main() {',
    ...(body
      ? 'json' in body
        ? [`\tbody := strings.NewReader(${goText(pretty(body.json))})`]
        : [`\tbody, err := os.Open(${JSON.stringify(body.file)})`, ...failure]
      : []),
    `\trequest, err := http.NewRequest(${JSON.stringify(method)}, ${JSON.stringify(url)}, ${body ? 'body' : 'nil'})`,
    ...failure,
    ...(token === undefined
      ? []
      : [`\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("${token}"))`]),
    ...allHeaders(headers, body).map(
      ([name, value]) => `\trequest.Header.Set(${JSON.stringify(name)}, ${JSON.stringify(value)})`,
    ),
    '\tresponse, err := http.DefaultClient.Do(request)',
    ...failure,
    '\tdefer response.Body.Close()',
    '\ttext, err := io.ReadAll(response.Body)',
    ...failure,
    '\tfmt.Println(response.StatusCode, string(text))',
    '}',
  ].join('\n')
}

function contentType(body: NonNullable<Call['body']>): string {
  return 'json' in body ? 'application/json' : body.type
}

function allHeaders(headers: Call['headers'], body: Call['body']): Call['headers'] {
  return body ? [...headers, ['Content-Type', contentType(body)]] : headers
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** Indents all lines but the first. */
function indented(text: string, levels: number): string {
  const step = /\n( +)/.exec(text)?.[1]?.length ?? 2
  return text.replaceAll('\n', `\n${' '.repeat(step * levels)}`)
}

/** How a language writes a JSON value. */
interface Notation {
  readonly indent: string
  readonly text: (text: string) => string
  readonly words: Readonly<Record<'true' | 'false' | 'null', string>>
  readonly list: readonly [open: string, close: string]
  readonly fields: readonly [open: string, close: string]
  readonly noFields: string
  readonly field: (name: string) => string
}

function literal(value: unknown, notation: Notation, before = ''): string {
  if (typeof value === 'string') return notation.text(value)
  if (value === null || value === true || value === false)
    return notation.words[String(value) as 'true' | 'false' | 'null']
  if (typeof value !== 'object') return JSON.stringify(value)
  const inner = before + notation.indent
  const write = (entries: readonly string[], [open, close]: readonly [string, string]) =>
    `${open}\n${entries.map(entry => `${inner}${entry},\n`).join('')}${before}${close}`
  if (Array.isArray(value)) {
    const [open, close] = notation.list
    return value.length === 0
      ? open + close
      : write(
          value.map(entry => literal(entry, notation, inner)),
          notation.list,
        )
  }
  const entries = Object.entries(value)
  if (entries.length === 0) return notation.noFields
  return write(
    entries.map(([name, field]) => notation.field(name) + literal(field, notation, inner)),
    notation.fields,
  )
}

const jsLiteral = (value: unknown) =>
  literal(value, {
    indent: '  ',
    text: jsText,
    words: { true: 'true', false: 'false', null: 'null' },
    list: ['[', ']'],
    fields: ['{', '}'],
    noFields: '{}',
    field: name => `${jsName(name)}: `,
  })

const pyLiteral = (value: unknown) =>
  literal(value, {
    indent: '    ',
    text: pyText,
    words: { true: 'True', false: 'False', null: 'None' },
    list: ['[', ']'],
    fields: ['{', '}'],
    noFields: '{}',
    field: name => `${pyText(name)}: `,
  })

/** An empty PHP array would become a JSON list. */
const phpLiteral = (value: unknown) =>
  literal(value, {
    indent: '    ',
    text: phpText,
    words: { true: 'true', false: 'false', null: 'null' },
    list: ['[', ']'],
    fields: ['[', ']'],
    noFields: 'new stdClass()',
    field: name => `${phpText(name)} => `,
  })

function jsName(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : jsText(name)
}

function jsText(text: string): string {
  return /['\\\n\r\u2028\u2029]/.test(text) ? JSON.stringify(text) : `'${text}'`
}

/** JSON's escapes are Python's. */
function pyText(text: string): string {
  return JSON.stringify(text)
}

/** Single quotes, in which only the quote and the backslash are special; text of several lines stays on one, in double quotes. */
function phpText(text: string): string {
  if (!/[\n\r]/.test(text)) return `'${text.replace(/[\\']/g, '\\$&')}'`
  return `"${text
    .replace(/[\\"$]/g, '\\$&')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')}"`
}

/** A raw string cannot contain a backquote. */
function goText(text: string): string {
  return text.includes('`') ? JSON.stringify(text) : `\`${text}\``
}

/** POSIX shell, "Single-Quotes": everything but the quote is literal. */
function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

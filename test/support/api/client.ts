/** A client of the REST API for tests: speaks JSON, takes any answer, judges none. */
import { until } from '../until.js'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** Parsed JSON. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests match it against what they expect
  readonly body: any
}

export interface AskOptions {
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Client {
  readonly baseUrl: string
  /** @param path from the root, e.g. `/api/v1/health` */
  get(path: string, options?: AskOptions): Promise<Answer>
  /** @param body sent as JSON; text is sent unchanged */
  post(path: string, body: unknown, options?: AskOptions): Promise<Answer>
  put(path: string, body: unknown, options?: AskOptions): Promise<Answer>
  patch(path: string, body: unknown, options?: AskOptions): Promise<Answer>
  /** @param body sent as JSON where there is one */
  delete(path: string, options?: AskOptions, body?: unknown): Promise<Answer>
  /** `POST /email/send`. */
  send(key: string, body: unknown): Promise<Answer>
  /** The message with its trace, once it reads this status. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests match it against what they expect
  messageOnce(key: string, id: string, status: string): Promise<any>
}

export function clientOf(baseUrl: string): Client {
  async function ask(
    method: string,
    path: string,
    { key, headers }: AskOptions,
    body?: string,
  ): Promise<Answer> {
    const response = await fetch(baseUrl + path, {
      method,
      headers: { ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }), ...headers },
      ...(body === undefined ? {} : { body }),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
    }
  }
  const tell =
    (method: string) =>
    (path: string, body: unknown, { headers, ...options }: AskOptions = {}) =>
      ask(
        method,
        path,
        { ...options, headers: { 'Content-Type': 'application/json', ...headers } },
        typeof body === 'string' ? body : JSON.stringify(body),
      )
  const client: Client = {
    baseUrl,
    get: (path, options = {}) => ask('GET', path, options),
    post: tell('POST'),
    put: tell('PUT'),
    patch: tell('PATCH'),
    delete: (path, options = {}, body) =>
      body === undefined ? ask('DELETE', path, options) : tell('DELETE')(path, body, options),
    send: (key, body) => client.post('/api/v1/email/send', body, { key }),
    messageOnce: (key, id, status) =>
      until(`message ${id} to be ${status}`, async () => {
        const { status: found, body } = await client.get(`/api/v1/email/${id}`, { key })
        if (found !== 200) throw new Error(`message ${id}: ${JSON.stringify(body)}`)
        return body.data.status === status ? body.data : undefined
      }),
  }
  return client
}

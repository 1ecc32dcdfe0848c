/**
 * Sends a request of the reference from the page, in a dialog: key, parameters and body on one side, code and response on the other.
 *
 * The key stays in the tab's session storage. Requests go to the server that served the page, with the session of an operator who is
 * signed in, if no key is given.
 */
import {
  callOf,
  codeSample,
  LANGUAGES,
  type Callable,
  type CallParameter,
  type Language,
} from '../code-samples.js'
import { chosenLanguage, codeBlock, copyButton, highlightAll, makeTabs, pageCalls, show } from './code.js'
import type { PageCalls } from '../page-data.js'
import { element, icon, recall, remember } from './elements.js'

const IDEMPOTENCY_KEY = 'Idempotency-Key'

/** Characters of a response that are shown. */
const MOST_SHOWN = 200_000

export function addTryButtons(): void {
  const parts = pageCalls()
  if (!parts) return
  for (const figure of document.querySelectorAll<HTMLElement>('figure.code[data-call]')) {
    const callable = parts.operations[figure.dataset['call'] ?? '']
    if (!callable) continue
    const button = element('button', { type: 'button', class: 'try' }, icon('M8 5l11 7-11 7z'), 'Try it')
    button.addEventListener('click', () => openDialog(parts, callable))
    figure.after(button)
  }
}

function openDialog(parts: PageCalls, callable: Callable): void {
  const dialog = new TryDialog(parts, callable)
  dialog.open()
}

class TryDialog {
  private readonly parts: PageCalls
  private readonly callable: Callable
  private readonly isAdmin: boolean
  private readonly key = element('input', { type: 'password', autocomplete: 'off', spellcheck: 'false' })
  private readonly workspace = element('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' })
  private readonly workspaceField = field(
    'X-Workspace',
    this.workspace,
    'For operators, by token or signed in: the id of the workspace.',
  )
  private readonly warning = element('p', { class: 'warning' })
  private readonly inputs = new Map<string, HTMLInputElement | HTMLSelectElement>()
  private readonly body = element('textarea', { rows: '12', spellcheck: 'false', autocomplete: 'off' })
  private readonly file = element('input', { type: 'file' })
  private readonly code = element('figure', { class: 'code' })
  private readonly result = element('div', { class: 'result', 'aria-live': 'polite' })
  private readonly send = element('button', { type: 'submit', class: 'send' }, 'Send')
  private readonly form = element('form', { class: 'request' })
  private readonly dialog: HTMLDialogElement

  constructor(parts: PageCalls, callable: Callable) {
    this.parts = parts
    this.callable = callable
    this.isAdmin = parts.token === 'POSTROAD_TOKEN'
    this.form.append(...this.fields())
    const close = element(
      'button',
      { type: 'button', class: 'close', 'aria-label': 'Close' },
      icon('M6 6l12 12M18 6L6 18'),
    )
    this.dialog = element(
      'dialog',
      { class: 'tryit', 'aria-labelledby': 'try-title' },
      element(
        'header',
        {},
        element(
          'h2',
          { id: 'try-title' },
          element('b', { class: `method ${callable.method.toLowerCase()}` }, callable.method),
          element('code', {}, callable.path),
        ),
        close,
      ),
      element(
        'div',
        { class: 'columns' },
        this.form,
        element('div', { class: 'outcome' }, this.result, this.code),
      ),
    )
    close.addEventListener('click', () => this.dialog.close())
    this.dialog.addEventListener('click', event => {
      if (event.target === this.dialog) this.dialog.close()
    })
    this.dialog.addEventListener('close', () => this.dialog.remove())
    this.form.addEventListener('submit', event => {
      event.preventDefault()
      void this.submit()
    })
    this.form.addEventListener('keydown', event => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.form.requestSubmit()
    })
    this.form.addEventListener('input', () => this.update())
  }

  open(): void {
    document.body.append(this.dialog)
    this.dialog.showModal()
    this.update()
    const empty = [...this.form.elements].find(one => one instanceof HTMLInputElement && one.value === '')
    if (empty instanceof HTMLElement) empty.focus()
  }

  private fields(): Node[] {
    const { isOpen, parameters, body } = this.callable
    this.key.value = recall('session', this.parts.token)
    this.workspace.value = recall('session', 'workspace')
    const keyField = this.isAdmin
      ? field('Operator token', this.key, 'Kept in this tab only. Empty: your session, if you are signed in.')
      : field('API key', this.key, 'Kept in this tab only. Keys that begin with ts_test_ use the sandbox.')
    const groups = (['path', 'query', 'header'] as const).map(place => {
      const fields = parameters.filter(one => one.in === place).map(one => this.parameterField(one))
      return group({ path: 'Path', query: 'Query', header: 'Headers' }[place], fields)
    })
    const isFile = typeof body?.example === 'string'
    if (body && !isFile) this.body.value = JSON.stringify(body.example, null, 2)
    return [
      ...(isOpen ? [] : [group('Authorization', [keyField, this.workspaceField])]),
      ...groups,
      ...(body ? [group('Body', isFile ? [field(body.type, this.file)] : [field('JSON', this.body)])] : []),
      element('footer', {}, this.warning, this.send),
    ].filter(one => one !== undefined)
  }

  private parameterField(parameter: CallParameter): HTMLElement {
    const { name, in: place, isRequired, example = '', choices } = parameter
    const isNeeded = isRequired || place === 'path'
    const input = choices
      ? element('select', {}, ...['', ...choices].map(choice => element('option', { value: choice }, choice)))
      : element('input', {
          type: 'text',
          autocomplete: 'off',
          spellcheck: 'false',
          ...(isNeeded ? { placeholder: example } : {}),
        })
    input.required = isNeeded
    if (name === IDEMPOTENCY_KEY) input.value = randomKey()
    this.inputs.set(name, input)
    return field(name, input)
  }

  private values(): Record<string, string> {
    return Object.fromEntries([...this.inputs].map(([name, input]) => [name, input.value]))
  }

  private update(): void {
    const key = this.key.value.trim()
    const isOperator = key === '' || key.startsWith('pa_')
    this.workspaceField.hidden = this.isAdmin || !isOperator
    const changes = this.callable.method !== 'GET'
    this.warning.textContent =
      changes && key.startsWith('ts_live_') ? 'This is a live key: the request takes effect.' : ''
    const call = callOf(this.parts, this.withBody(), this.values())
    const blocks = (Object.keys(LANGUAGES) as Language[]).map(language =>
      codeBlock(language, codeSample(language, call)),
    )
    this.code.replaceChildren(element('figcaption', {}, element('span', {}, 'Code')), ...blocks)
    makeTabs(this.code)
    show(chosenLanguage(), this.dialog)
    highlightAll(this.code)
  }

  /** With the edited body, once it is JSON again. */
  private withBody(): Callable {
    const { body } = this.callable
    if (!body || typeof body.example === 'string') return this.callable
    try {
      return { ...this.callable, body: { ...body, example: JSON.parse(this.body.value) as unknown } }
    } catch {
      return this.callable
    }
  }

  private async submit(): Promise<void> {
    const key = this.key.value.trim()
    const workspace = this.workspace.value.trim()
    remember('session', this.parts.token, key)
    remember('session', 'workspace', workspace)
    const { pathname } = new URL(this.parts.base)
    const call = callOf({ base: location.origin + pathname, token: '' }, this.callable, this.values())
    const headers = new Headers([...call.headers.map(([name, value]): [string, string] => [name, value])])
    if (key !== '') headers.set('Authorization', `Bearer ${key}`)
    if (!this.workspaceField.hidden && workspace !== '') headers.set('X-Workspace', workspace)
    const content = this.content()
    if (content !== undefined) headers.set('Content-Type', this.callable.body?.type ?? 'application/json')
    this.send.disabled = true
    const started = performance.now()
    try {
      const response = await fetch(call.url, {
        method: call.method,
        headers,
        ...(content === undefined ? {} : { body: content }),
        cache: 'no-store',
        redirect: 'manual',
      })
      const text = await response.text()
      this.showResponse(response, text, performance.now() - started)
      const idempotencyKey = this.inputs.get(IDEMPOTENCY_KEY)
      // The next request is another one, unless the reader wrote the key.
      if (response.ok && idempotencyKey?.value.startsWith(DOCS_PREFIX)) idempotencyKey.value = randomKey()
    } catch (error) {
      this.result.replaceChildren(element('p', { class: 'failed' }, `No response: ${String(error)}`))
    } finally {
      this.send.disabled = false
    }
  }

  private content(): string | File | undefined {
    const { body } = this.callable
    if (!body) return undefined
    if (typeof body.example === 'string') return this.file.files?.[0] ?? body.example
    return this.body.value.trim() === '' ? undefined : this.body.value
  }

  private showResponse(response: Response, text: string, ms: number): void {
    const kind = String(response.status).slice(0, 1)
    const shown = isJson(response) ? prettyJson(text) : text
    const block = codeBlock(isJson(response) ? 'json' : 'text', shown.slice(0, MOST_SHOWN))
    const size = new Blob([text]).size
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
    this.result.replaceChildren(
      element(
        'p',
        { class: 'status-line' },
        element('b', { class: `status s${kind}` }, String(response.status)),
        ` ${response.statusText} `,
        element('span', {}, `${Math.round(ms)} ms`),
        element('span', {}, size < 1_024 ? `${size} B` : `${(size / 1_024).toFixed(1)} KB`),
        copyButton(() => shown),
      ),
      text === '' ? element('p', { class: 'note' }, 'The response has no body.') : block,
      element('details', {}, element('summary', {}, 'Headers'), codeBlock('text', headers)),
    )
    highlightAll(this.result)
    this.result.scrollIntoView({ block: 'nearest' })
  }
}

const DOCS_PREFIX = 'docs-'

function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12))
  return DOCS_PREFIX + [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('')
}

let ids = 0

function field(name: string, input: HTMLElement, hint?: string): HTMLElement {
  input.id = `try-${++ids}`
  const note = hint === undefined ? undefined : element('small', { id: `${input.id}-hint` }, hint)
  if (note) input.setAttribute('aria-describedby', note.id)
  const isRequired = 'required' in input && input.required === true
  return element(
    'div',
    { class: 'field' },
    element(
      'label',
      { for: input.id },
      name,
      isRequired ? element('b', { class: 'required' }, 'required') : undefined,
    ),
    input,
    note,
  )
}

function group(title: string, fields: readonly HTMLElement[]): HTMLElement | undefined {
  if (fields.length === 0) return undefined
  return element('fieldset', {}, element('legend', {}, title), ...fields)
}

function isJson(response: Response): boolean {
  return /\bjson\b/.test(response.headers.get('Content-Type') ?? '')
}

function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

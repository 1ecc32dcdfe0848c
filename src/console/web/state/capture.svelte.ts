/** Whether the server keeps mail instead of sending it, and what its figures are called then. */
import { rest } from '../api/client'
import { tr } from '../i18n/i18n'

const state = $state({ isOn: false })

/** Asked once per visit: a server that sends again has been restarted. A fault leaves it as it was. */
export async function readCapture(): Promise<void> {
  const { data, error } = await rest.GET('/health')
  // The answer is the same with status 503.
  const health = ((data ?? error) as { data?: { captures_mail?: boolean } } | undefined)?.data
  if (health?.captures_mail !== undefined) state.isOn = health.captures_mail
}

export function isCapturing(): boolean {
  return state.isOn
}

/** Of figures that count captured mail as delivered. */
export function deliveredText(): string {
  return state.isOn ? tr().captured.orDelivered : tr().campaigns.delivered
}

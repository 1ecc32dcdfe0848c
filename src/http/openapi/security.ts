/** Who may call an operation, in the OpenAPI documents: security schemes, permissions and a sentence. */
import type { Access, AdminAccess, Route } from '../route.js'

export const KEY_SCHEME = {
  apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: ts_live_... or ts_test_...' },
}

export const OPERATOR_SCHEMES = {
  operatorToken: { type: 'http', scheme: 'bearer', description: 'An operator token: pa_...' },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-postroad',
    description: 'The session of an operator (`postroad_session` if public_url is http).',
  },
}

export function securityOf({ access, api }: Route['head']): object[] {
  if (access === 'public') return []
  return api ? [{ operatorToken: [] }, { session: [] }] : [{ apiKey: [] }]
}

/** As extensions, for generated clients and the console. */
export function permissionOf(access: Access): object {
  if (typeof access !== 'object')
    return access === 'public' || access === 'key' ? {} : { 'x-permission': access }
  const { permission, scope, isSensitive } = access
  return {
    ...(permission === 'any' ? {} : { 'x-permission': permission, 'x-scope': scope }),
    ...(isSensitive ? { 'x-sensitive': true } : {}),
  }
}

const SCOPES: Readonly<Record<AdminAccess['scope'], string>> = {
  appliance: 'in a role for all workspaces',
  path: 'in the workspace',
  query: 'in the workspace `workspace_id` or, without it, in a role for all workspaces',
  record: "in the record's workspace",
}

export function whoMayCall(access: Access): string {
  if (typeof access === 'object') {
    const { permission, scope, isSensitive } = access
    const recent = isSensitive ? ' A session needs a sign-in within the last 15 minutes.' : ''
    if (permission === 'any') return `Open to every operator.${recent}`
    return `Requires the permission \`${permission}\` ${SCOPES[scope]}.${recent}`
  }
  if (access === 'public') return 'Needs no key.'
  return access === 'key' ? 'Works with any valid key.' : `Requires the permission \`${access}\`.`
}

/** Whether the server answers. */

const state = $state({ isReachable: true })

export function isReachable(): boolean {
  return state.isReachable
}

export function noteReachable(isReachable: boolean): void {
  if (state.isReachable !== isReachable) state.isReachable = isReachable
}

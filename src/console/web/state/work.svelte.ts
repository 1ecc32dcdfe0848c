/** A request that changes something: whether it runs, and what went wrong. What was typed stays. */
import type { ApiFault } from '../api/fault'
import { asFault } from './loaded.svelte'

export class Work {
  isBusy = $state(false)
  fault = $state.raw<ApiFault>()

  /** A second call while the first one runs does nothing. @returns whether it went well */
  async run(work: () => Promise<void>): Promise<boolean> {
    if (this.isBusy) return false
    this.isBusy = true
    this.fault = undefined
    try {
      await work()
      return true
    } catch (error) {
      this.fault = asFault(error)
      return false
    } finally {
      this.isBusy = false
    }
  }

  clear(): void {
    this.fault = undefined
  }
}

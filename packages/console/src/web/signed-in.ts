import { redirect } from '@tanstack/react-router'
import { isSignedOut } from './api.ts'

/** Without a session, the person signs in and comes back. */
export async function signedIn<Value>(read: () => Promise<Value>, back: string): Promise<Value> {
  try {
    return await read()
  } catch (error) {
    if (isSignedOut(error)) throw redirect({ to: '/sign-in', search: back === '/' ? {} : { back } })
    throw error
  }
}

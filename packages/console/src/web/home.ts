/** The pages that `/` leads to, also on a first visit without a session. */
import type { QueryClient } from '@tanstack/react-query'
import { notFound, redirect } from '@tanstack/react-router'
import { environmentsQuery, findPlace, workspacesQuery, type Place } from './queries.ts'
import { isSignedOut } from './api.ts'

/** The page for `/`: the environment that was last open in this browser, or else the first one. */

const KEY = 'tacho.place'

interface PlaceNames {
  workspace: string
  environment: string
}

export function rememberPlace(names: PlaceNames): void {
  localStorage.setItem(KEY, JSON.stringify(names))
}

export async function homeAddress(
  cache: QueryClient,
): Promise<{ to: '/w/$workspace/$environment'; params: PlaceNames } | { to: '/welcome' }> {
  const params = (await lastPlace(cache)) ?? (await firstPlace(cache))
  return params ? { to: '/w/$workspace/$environment', params } : { to: '/welcome' }
}

async function lastPlace(cache: QueryClient): Promise<PlaceNames | null> {
  const names = readNames()
  if (names === null) return null
  return (await findPlace(cache, names.workspace, names.environment)) ? names : null
}

async function firstPlace(cache: QueryClient): Promise<PlaceNames | null> {
  for (const workspace of await cache.ensureQueryData(workspacesQuery)) {
    const [environment] = await cache.ensureQueryData(environmentsQuery(workspace.id))
    if (environment) return { workspace: workspace.name, environment: environment.name }
  }
  return null
}

function readNames(): PlaceNames | null {
  try {
    const { workspace, environment } = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<PlaceNames>
    return typeof workspace === 'string' && typeof environment === 'string' ? { workspace, environment } : null
  } catch {
    return null
  }
}

/** The place in an address. */
export async function placeAt(cache: QueryClient, workspace: string, environment: string): Promise<Place> {
  const place = await findPlace(cache, workspace, environment)
  if (place === null) throw notFound()
  return place
}

/** Runs a query. Without a session, the person first signs in and then returns. */
export async function signedIn<Value>(read: () => Promise<Value>, back: string): Promise<Value> {
  try {
    return await read()
  } catch (error) {
    if (isSignedOut(error)) throw redirect({ to: '/sign-in', search: back === '/' ? {} : { back } })
    throw error
  }
}

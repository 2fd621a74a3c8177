import { getRouteApi, Link } from '@tanstack/react-router'

const route = getRouteApi('/w/$workspace/$environment')

export function GetStartedLink() {
  const params = route.useParams()
  return (
    <Link
      to="/w/$workspace/$environment/get-started"
      params={params}
      className="inline-flex h-8 items-center rounded-md bg-accent-fill px-3 text-sm font-medium text-on-accent hover:brightness-110"
    >
      Get started
    </Link>
  )
}

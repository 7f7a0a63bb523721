import AirportOpsModels
import RealmSwift

extension AirportScene {
    /// Shares a flight between a replica of our SDK and a client of Realm's protocol, in both directions.
    func shareWithRealmSDK() async throws {
        guard let realm = a.realm, let token = c.user?.accessToken else { throw SceneFailure("Ada or Cleo has no session.") }
        let shipped = try await RealmSDKClient(
            gateway.url, app: setup.appID, token: token, query: "origin == 'JFK' and month == 12 and dep_delay > 60")
        let expected = try await count("origin = 'JFK' AND month = 12 AND dep_delay > 60")
        try require(shipped.count == expected, "the client of Realm's protocol has \(shipped.count) flights, not \(expected)")
        let flight = try await key("origin = 'JFK' AND month = 12 AND dep_delay > 60 ORDER BY \"_id\" DESC LIMIT 1")
        try await shipped.write(remark: "from a shipped app", of: flight)
        try await eventually("Ada sees the remark of the Realm SDK") {
            realm.object(ofType: Flight.self, forPrimaryKey: flight)?.remark == "from a shipped app"
        }
        try realm.write { realm.object(ofType: Flight.self, forPrimaryKey: flight)?.gate = "R14" }
        try await shipped.receive(gate: "R14", of: flight)
        shipped.disconnect()
        reporter.step(
            "r",
            "a client of Realm's protocol has \(shipped.count) flights; Ada has its remark on flight \(flight), and it has her gate")
    }
}

import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceValues
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `What operators see of plugins` {
    @Test func `is each one's state, calls, refusals and last error`() async throws {
        try await RunningGateway.with(files: FaultyApp.files, plugins: ["FaultyC"], isDevelopment: true) { gateway in
            let session = try await gateway.openSession(["Store"])
            let calm = try await Self.plugin(gateway) { $0["state"] == "running" }
            #expect(calm["name"] == "FaultyC" && calm["version"]?.string != nil && calm["in_process"] == false, "\(calm)")
            #expect(calm["last_error"] == .null && calm["failures"] == 0 && calm["hosts_ended"] == 0, "\(calm)")
            let process = try #require(calm["process"]?.int, "\(calm)")

            // It crashes, and is back for whoever comes next.
            try await Self.fail(gateway, "do-crash")
            let next = try await gateway.openSession(["Store"])
            let again = try await Self.plugin(gateway) { $0["state"] == "running" }
            #expect(again["process"]?.int != process && (again["hosts_ended"]?.int ?? 0) >= 1, "\(again)")
            #expect((again["failures"]?.int ?? 0) >= 1 && (again["calls"]?.int ?? 0) > (calm["calls"]?.int ?? .max), "\(again)")
            #expect(again["last_error"]?["code"] == .int(Int64(ErrorCode.pluginCrashed.rawValue)), "\(again)")
            #expect(again["last_error"]?["error"]?.string?.contains("signal 11") == true, "\(again)")
            #expect((again["last_error"]?["seconds_ago"]?.int ?? -1) >= 0, "\(again)")

            // An answer that is none is its failure, too; the process goes on.
            try await Self.fail(gateway, "do-garbage")
            let garbled = try await Self.plugin(gateway) { $0["last_error"]?["code"] != again["last_error"]?["code"] }
            #expect(garbled["last_error"]?["code"] == .int(Int64(ErrorCode.pluginBadAnswer.rawValue)), "\(garbled)")
            #expect(session.error == nil && next.error == nil)
        }
    }

    @Test func `is that each has a process of its own unless its entry says otherwise`() async throws {
        let list = """
            { "plugins": [
                { "file": "libAuditTrail.so", "config": { "types": ["Order"] } }, { "file": "libFreezeC.so", "config": {}, "in_process": true }
            ] }
            """
        try await RunningGateway.with(files: ["plugins.json": list]) { gateway in
            let answer = try await gateway.request("GET", "/admin/v1/plugins", admin: true).json
            let plugins = try #require(answer["generations"]?.array?.first?["plugins"]?.array, "\(answer)")
            #expect(plugins.map { $0["name"] } == ["AppServicesRules", "AuditTrail", "FreezeC"])
            #expect(plugins.map { $0["in_process"] } == [false, false, true])
            let processes = plugins.map { $0["process"]?.int }
            #expect(processes[2] == nil && Set(processes.prefix(2)).count == 2, "\(processes)")
            for process in processes.prefix(2) {
                #expect(process.map { $0 != getpid() && kill(Int32($0), 0) == 0 } == true, "\(processes)")
            }
        }
    }

    private static func fail(_ gateway: RunningGateway, _ word: String) async throws {
        let session = try await gateway.session(token: try await gateway.account(customData: #"{"word": "\#(word)"}"#).token)
        try await session.sendHello(["Store"])
        _ = try await session.failure()
    }

    /// The one plugin, once it is so.
    private static func plugin(_ gateway: RunningGateway, when isSo: (JSON) -> Bool) async throws -> JSON {
        let met = try await found {
            let answer = try await gateway.request("GET", "/admin/v1/plugins", admin: true).json
            let generation = try #require(answer["generations"]?.array?.first, "\(answer)")
            #expect(generation["in_use"] == true && generation["generation"] == 1)
            let plugin = try #require(generation["plugins"]?.array?.first, "\(answer)")
            return isSo(plugin) ? plugin : nil
        }
        return try #require(met, "the plugin is in another state")
    }
}

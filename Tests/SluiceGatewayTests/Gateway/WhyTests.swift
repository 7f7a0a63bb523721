import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceValues
import SluiceWire
import SwiftProtobuf
import TestSupport
import Testing

@Suite struct `Why a user has an object or not` {
    private static let role = NoteApp.role("member", read: #"{ "team": "%%user.custom_data.team" }"#, write: "false")

    private static func why(_ gateway: RunningGateway, _ user: String, _ id: String, type: String = "Note") async throws -> JSON {
        try await gateway.request("GET", "/admin/v1/why?user=\(user)&type=\(type)&id=\(id)", admin: true).json
    }

    private static func reasons(_ answer: JSON) -> [String] { answer["because"]?.array?.compactMap(\.string) ?? ["\(answer)"] }

    @Test func `names the query that brings it, the clause that keeps it away, and what is not there`() async throws {
        try await NoteApp.with(["Note": "[\(Self.role)]"]) { gateway in
            try await gateway.sql(
                """
                INSERT INTO "Note" (_id, owner_id, team, text) VALUES
                    ('mine', 'ann', 'red', 'x'), ('other', 'bob', 'red', 'x'), ('theirs', 'ann', 'blue', 'x')
                """)
            let ann = try await gateway.account(customData: #"{ "team": "red" }"#)
            let before = try await Self.why(gateway, ann.id, "mine")
            #expect(Self.reasons(before) == ["The user has no session on this gateway now."])
            #expect(before["rules"]?["role"]?.string == "member" && before["rules"]?["read"]?["matches"]?.bool == true)

            let session = try await gateway.session(token: ann.token)
            try await session.hello(["Note"])
            let device = "Device \(session.welcome?.client ?? 0)"
            #expect(Self.reasons(try await Self.why(gateway, ann.id, "mine")) == ["\(device) has not sent a subscription set yet."])
            try await session.subscribe(1, [("Note", "owner_id == 'ann'")])
            let mine = try await Self.why(gateway, ann.id, "mine")
            let granted = #"the role 'member' permits reading objects with team == "red""#
            #expect(Self.reasons(mine) == ["\(device) has it, by the query owner_id == 'ann'; \(granted)."])
            #expect(mine["sessions"]?.array?.first?["has_object"]?.bool == true && mine["exists"]?.bool == true)
            #expect(
                Self.reasons(try await Self.why(gateway, ann.id, "other"))
                    == ["\(device) does not subscribe to it: owner_id == 'ann' (not met: owner_id == \"ann\")."])
            let theirs = Self.reasons(try await Self.why(gateway, ann.id, "theirs"))
            #expect(theirs.count == 2 && theirs[0].contains("'member'") && theirs[0].contains("team == \"red\""), "\(theirs)")
            #expect(Self.reasons(try await Self.why(gateway, ann.id, "nothing"))[0] == "PostgreSQL has no such object.")

            // Of a device that is offline it says what it cannot know, and when the device was there last.
            let client = session.welcome?.client ?? 0
            session.close()
            let without = try await found {
                let said = try await Self.why(gateway, ann.id, "mine")
                return said["sessions"]?.array == [] ? said : nil
            }
            let gone = try #require(without, "the session has not gone")
            let away = try #require(gone["elsewhere"]?.array)
            #expect(away.count == 1 && away[0]["client"] == .int(Int64(client)), "\(gone)")
            let at = try #require(away[0]["seen_at"]?.string)
            #expect(
                Self.reasons(gone) == [
                    "The user has no session on this gateway now.",
                    "\(device) is offline or on another gateway. Its subscriptions are unknown here. Last seen at \(at).",
                ])

            // What nobody can have an opinion on is an error with a code.
            #expect(try await Self.why(gateway, "nobody", "mine")["code"]?.int == Int64(ErrorCode.userNotFound.rawValue))
            #expect(try await Self.why(gateway, ann.id, "mine", type: "Nota")["fix"]?.string == "Did you mean 'Note'?")
            #expect(try await gateway.request("GET", "/admin/v1/why", admin: true).status == 400)
            session.close()
        }
    }

    @Test func `tells of rows in quarantine`() async throws {
        try await RunningGateway.with { gateway in
            let account = try await gateway.account()
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Tag"])
            try await session.subscribe(1, [("Tag", "TRUEPREDICATE")])
            try await gateway.sql(#"INSERT INTO tags (_id, place) VALUES ('bad', '{"x": "text"}')"#)
            try await gateway.untilMetric("sluice_quarantined_rows", is: 1)
            let answer = try await Self.why(gateway, account.id, "bad", type: "Tag")
            let reasons = Self.reasons(answer)
            #expect(reasons.first?.hasPrefix("Its row does not fit the class and is in quarantine: ") == true, "\(reasons)")
            #expect(answer["exists"]?.bool == false && answer["sessions"]?.array?.first?["has_object"]?.bool == false)
            session.close()
        }
    }

    @Test func `tells of a write that a device took back, and keeps nothing of what is no write`() async throws {
        try await RunningGateway.with { gateway in
            let account = try await gateway.account()
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Order"])
            let written: [(type: String, key: Value)] = [("Order", .string("large")), ("Nothing", .string("large")), ("Order", .int(1))]
            let reported = written.compactMap { PBReportedWrite(changeset: 4, ObjectKey(type: $0.type, key: $0.key)) }
            for _ in 0..<20 {
                try await session.send(
                    .reportError(
                        .with {
                            $0.code = UInt32(ErrorCode.writeTooLarge.rawValue)
                            $0.message = "The write transaction 4 has 20000000 bytes to upload."
                            $0.writes = reported
                        }))
            }
            // Handled after the reports.
            try await session.subscribe(1, [("Order", "store == 'north'")])
            let answer = try await Self.why(gateway, account.id, "large", type: "Order")
            let reason = try #require(Self.reasons(answer).last)
            #expect(reason.hasPrefix("A write by device \(session.welcome?.client ?? 0) was undone at "), "\(reason)")
            #expect(reason.hasSuffix(", decided by the device: The write transaction 4 has 20000000 bytes to upload."), "\(reason)")
            #expect(answer["refused_writes"]?.array?.first?["code"]?.int == Int64(ErrorCode.writeTooLarge.rawValue))
            // As many as reports are logged, none of which is sent to the device.
            #expect(try await gateway.count("SELECT count(*) FROM sluice.rejected_write WHERE acknowledged AND cause = 'too_large'") == 16)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.rejected_write") == 16)
            session.close()
        }
    }

    @Test func `tells of rules that fail`() async throws {
        try await RunningGateway.with(plugins: ["FaultyC"]) { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
            let account = try await gateway.account(customData: #"{ "word": "do-crash" }"#)
            let reasons = Self.reasons(try await Self.why(gateway, account.id, "n1", type: "Order"))
            #expect(reasons.first?.hasPrefix("The rules reject the session: ") == true, "\(reasons)")
        }
    }

    private static let harbour = Schema([
        ObjectType(name: "Port", properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "name", type: .string)]),
        ObjectType(
            name: "Ship",
            properties: [
                Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "port", type: .link(to: "Port"), isOptional: true),
            ]),
    ])

    @Test func `tells what a plugin narrows a class by of which objects come along`() async throws {
        try await RunningGateway.with(files: ShopApp.withoutRules, plugins: ["FaultyC"], isDevelopment: true) { gateway in
            let account = try await gateway.account()
            let session = try await gateway.session(token: account.token)
            try await session.hello(Self.harbour)
            try await gateway.sql(
                #"INSERT INTO "Port" (_id, name) VALUES ('a', 'A'), ('b', 'B'), ('c', 'C');"#
                    + #"INSERT INTO "Ship" (_id, port) VALUES ('s1', 'a'), ('s2', 'b')"#)
            try await session.send(
                .subscribe(
                    .with {
                        $0.version = 1
                        $0.queries = [
                            .with { ($0.type, $0.text, $0.include) = ("Ship", "_id != 'do-port'", ["port"]) }
                        ]
                    }))
            try await session.receive { $0.completed == 1 }
            #expect(session.keys("Port") == ["a"] && session.keys("Ship") == ["s1", "s2"])
            let device = "Device \(session.welcome?.client ?? 0)"
            let linked = "\(device) receives objects of the class as included links"
            let cut = try await Self.why(gateway, account.id, "b", type: "Port")
            let reason = try #require(Self.reasons(cut).last)
            #expect(reason.hasPrefix("\(linked), which the rules narrow by "), "\(reason)")
            #expect(reason.hasSuffix(#"; not met: name != "B""#), "\(reason)")
            #expect(cut["sessions"]?.array?.first?["linked"]?["matches"]?.bool == false, "\(cut)")
            let here = try #require(Self.reasons(try await Self.why(gateway, account.id, "a", type: "Port")).last)
            #expect(here.hasPrefix("\(device) has it, as an included link or a member of a limited query, which the rules narrow by "))
            // What the log tells of these rows may come after the bootstrap, and have the session look at its members again meanwhile.
            let elsewhere = "\(linked), but not this one, because of the rules or because no object of its view links to it."
            var said = ""
            let isSaid = try await eventually {
                said = Self.reasons(try await Self.why(gateway, account.id, "c", type: "Port")).last ?? ""
                return said == elsewhere
            }
            #expect(isSaid, "\(said)")
            // Nothing of the class of the query itself comes along.
            let ship = try await Self.why(gateway, account.id, "s1", type: "Ship")
            #expect(ship["sessions"]?.array?.first?["linked"] == .null && ship["sessions"]?.array?.first?["has_object"]?.bool == true)
            session.close()
        }
    }

    @Test func `tells what a plugin narrows a query by`() async throws {
        try await RunningGateway.with(plugins: ["FaultyC"]) { gateway in
            try await gateway.sql(
                "INSERT INTO orders (_id, store, title, size) VALUES ('small', 'north', 'x', 1), ('large', 'north', 'x', 100)")
            let account = try await gateway.account()
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Order"])
            let query = "store == 'north' AND title != 'do-small'"
            try await session.subscribe(1, [("Order", query)])
            let device = "Device \(session.welcome?.client ?? 0)"
            let answer = try await Self.why(gateway, account.id, "large", type: "Order")
            #expect(
                Self.reasons(answer).last
                    == "\(device) subscribes to it by \(query), which the rules narrow by (size < 100); not met: size < 100")
            let narrowed = try #require(answer["sessions"]?.array?.first?["narrowed"]?.array?.first)
            #expect(narrowed["query"]?.string == "(size < 100)" && narrowed["matches"]?.bool == false)
            let small = try await Self.why(gateway, account.id, "small", type: "Order")
            #expect(small["sessions"]?.array?.first?["narrowed"]?.array?.first?["matches"]?.bool == true)
            session.close()
        }
    }
}

import SluiceIdentity
import SluicePorts
import SluiceValues
import Testing

@Suite struct `Calls of functions in rules` {
    @Test func `are found wherever a condition has them`() throws {
        let condition = try JSON.located(
            Array(
                """
                {
                    "$or": [
                        {"%%true": {"%function": {"name": "isChief", "arguments": ["%%user.id", 1.0]}}},
                        {"%function": {"name": "isOpen"}}
                    ],
                    "%%user.custom_data.team": {"$in": {"%function": {"name": "teams", "arguments": [{"of": ["%%values.region", "x"]}]}}},
                    "%%user.data.x": {"%function": {"arguments": []}}
                }
                """.utf8))
        let calls = RuleCall.calls(in: condition)
        #expect(
            calls == [
                RuleCall("isChief", arguments: ["%%user.id", 1.0]), RuleCall("isOpen"),
                RuleCall("teams", arguments: [["of": ["%%values.region", "x"]]]),
            ])
        #expect(calls.map(\.names) == [["%%user.id"], [], ["%%values.region"]])
        let values: [String: JSON] = ["%%user.id": "ann"]
        #expect(calls[0].arguments { values[$0] } == ["ann", 1.0])
        #expect(calls[2].arguments { values[$0] } == [["of": [.null, "x"]]])
    }

    @Test func `have results for a minute, by call and by the data of the user`() {
        var results = RuleResults()
        let ann = UserContext(id: "ann", customData: ["team": "red"])
        let key = RuleResults.Key(RuleCall("f", arguments: [1]), for: ann)
        results.store(true, of: key, at: 5)
        results.store(false, of: key, at: 10)
        var (moved, planned) = (ann, ann)
        moved.customData = ["team": "blue"]
        planned.functions = [RuleFunctionResult(name: "f", arguments: [1], result: true)]
        #expect(results.result(of: RuleResults.Key(key.call, for: planned), at: RuleResults.lifetime + 4) == true)
        #expect(results.result(of: RuleResults.Key(key.call, for: moved), at: 6) == nil)
        #expect(results.result(of: RuleResults.Key(RuleCall("f", arguments: [2]), for: ann), at: 6) == nil)
        #expect(results.result(of: key, at: RuleResults.lifetime + 5) == nil)
        #expect(results.count == 0)
    }

    @Test func `keep a bounded number of results, the newest ones`() {
        var results = RuleResults()
        let keys = (0..<RuleResults.most + 1_500).map { RuleResults.Key(RuleCall("f"), for: UserContext(id: "u\($0)")) }
        for (time, key) in keys.enumerated() {
            results.store(.int(Int64(time)), of: key, at: UInt64(time))
            #expect(results.count <= RuleResults.most)
        }
        let now = UInt64(keys.count)
        #expect(results.result(of: keys[1_499], at: now) == nil)
        #expect(results.result(of: keys[1_500], at: now) == 1_500)
        #expect(results.result(of: keys[keys.count - 1], at: now) == .int(Int64(keys.count - 1)))
        // All that are left expire in their order.
        #expect(results.result(of: keys[keys.count - 1], at: RuleResults.lifetime + now) == nil)
        #expect(results.count == 0)
    }
}

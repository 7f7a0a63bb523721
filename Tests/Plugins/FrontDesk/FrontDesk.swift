import SluicePluginKit

@c func sluice_plugin_type() -> PluginExport { PluginMain.export(FrontDesk.self) }

/// Functions and logins of a test's app.
final class FrontDesk: FunctionHandler, LoginHandler, AsksGateway {
    static let name = "FrontDesk"
    static let version = "1.0"
    static let configKeys: [String: ConfigKey]? = ["chiefs": ConfigKey(.list(of: .text))]

    private var chiefs: Set<String> = []
    private var gateway: PluginGateway?

    init(log: PluginLog) {}

    func connect(to gateway: PluginGateway) { self.gateway = gateway }

    func configure(_ app: AppConfiguration) throws -> [String] {
        chiefs = Set((app.config["chiefs"]?.array ?? []).compactMap(\.string))
        return []
    }

    func callFunction(_ call: PluginFunctionCall) throws -> PluginValue {
        gateway?.count("calls")
        switch call.function {
        case "add", "addAsSystem":
            guard !call.arguments.isEmpty else { throw PluginDenial("There is nothing to add.") }
            let sum = call.arguments.reduce(0) { $0 + Int64($1.number ?? 0) }
            return [
                "sum": ["$numberLong": .string("\(sum)")], "user": call.user.map { .string($0.id) } ?? .null, "as": .string(call.runAs),
            ]
        case "admit", "confirm", "reset", "greet", "file": return try serve(call)
        case "isChief": return .bool(call.arguments.first?.string.map(chiefs.contains) ?? false)
        case "fail": throw PluginError("The disk /secret/place of FrontDesk is full.")
        case "crash": fatalError("as it was asked to")
        case "hang": while true {}
        default: throw PluginDenial("It has no such function.")
        }
    }

    /// Answers the gateway itself. Its tests count what was served.
    private func serve(_ call: PluginFunctionCall) throws -> PluginValue {
        guard call.user == nil, call.runAs == "system", let argument = call.arguments.first else {
            throw PluginDenial("That is for the gateway alone.")
        }
        let answer: PluginValue
        switch call.function {
        case "admit":
            if argument["data"]?["email"]?.string?.hasPrefix("no") == true { throw PluginDenial("We know you.") }
            answer = .null
        case "confirm": answer = ["status": argument["username"]?.string?.hasPrefix("spam") == true ? "fail" : "success"]
        case "reset": answer = ["status": call.arguments.dropFirst().first?.string == "blue" ? "success" : "fail"]
        case "greet":
            guard argument["operationType"]?.string == "LOGIN", argument["user"]?["id"]?.string != nil else {
                throw PluginDenial("That is no login.")
            }
            answer = .null
        default:
            guard argument["operationType"]?.string == "insert", argument["fullDocument"]?["store"]?.string == "north" else {
                throw PluginDenial("That is no new order of the north.")
            }
            answer = .null
        }
        gateway?.count("served_\(call.function)")
        return answer
    }

    func authenticate(payload: PluginValue, requestID: String) throws -> PluginIdentity {
        guard let badge = payload["badge"]?.string, !badge.hasPrefix("guest-") else { throw PluginDenial("Show a badge.") }
        return PluginIdentity(id: badge, name: "Bearer of \(badge)")
    }
}

import SluiceCore

extension GatewayConflict {
    /// SQL as the fourth who wants what the devices want: a statement that writes it, later than all of them by its time.
    struct Contest {
        /// What it sets of the object's row, where there is one.
        var set: String
        /// What it finds when all is over, by `shows`; nil: no row.
        var outcome: (Moment) -> String?

        init(_ set: String, _ outcome: String?) { self.init(set) { _ in outcome } }

        init(_ set: String, _ outcome: @escaping (Moment) -> String?) { (self.set, self.outcome) = (set, outcome) }
    }

    /// How many of the devices' writes came before SQL's, and in which order all of them came.
    struct Moment {
        var place: Int
        var order: [Int]

        func isAfter(_ device: Int) -> Bool { order.prefix(place).contains(device) }
    }

    var contest: Contest {
        switch rule {
        // There is nothing left to write to, or it is taken away again: a deletion that did not know of it wins all the same.
        case "CR-1", "CR-2": Contest(Self.both, nil)
        case "CR-3": Contest(Self.both) { $0.isAfter(0) ? "sql 100" : "new 1" }
        case "CR-4": Contest(Self.both) { $0.place > 0 ? "sql 100" : outcome }
        case "CR-6": Contest(Self.both) { $0.place > 0 ? "sql 100" : outcome }
        case "CR-10": Contest("count = 100", "100")
        case "CR-19": Contest("members = '{s}'", "{s}")
        case "CR-20": Contest(#"pairs = '{"s": 1}'"#, #"{"s": 1}"#)
        // The whole value, which is later than the null, too.
        case "CR-21", "CR-22": Contest(#"place = '{"x": 100}'"#, "100")
        case "CR-24": Contest("blend = '[100]'", "[100]")
        case "CR-25": Contest("peer = 'sql'", "false")
        default: type == "Order" ? Contest(Self.both, "sql 100") : Contest("labels = '{s}'", "{s}")
        }
    }

    private static let both = "title = 'sql', size = 100"
}

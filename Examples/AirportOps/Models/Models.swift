import Foundation
import RealmSwift

// The classes of the airport app, as an app developer writes them. They do not depend on the gateway.

/// A flight that left New York in 2013.
public final class Flight: Object {
    @Persisted(primaryKey: true) public var _id: Int
    @Persisted public var year: Int
    @Persisted public var month: Int
    @Persisted public var day: Int
    /// Local time as hours and minutes: 517 is 5:17. Nil if the flight was cancelled.
    @Persisted public var dep_time: Int?
    @Persisted public var sched_dep_time: Int
    /// Minutes. Negative is early.
    @Persisted public var dep_delay: Int?
    @Persisted public var arr_time: Int?
    @Persisted public var sched_arr_time: Int
    @Persisted public var arr_delay: Int?
    @Persisted public var carrier: String
    @Persisted public var flight: Int
    @Persisted public var tailnum: String?
    /// The indexed queryable field, which every subscription must pin.
    @Persisted public var origin: String
    @Persisted public var dest: String
    @Persisted public var time_hour: Date
    /// Written by the agents at the gate.
    @Persisted public var remark: String?
    @Persisted public var gate: String?
}

/// One weather report. The app writes it and never reads it.
public final class WeatherObservation: AsymmetricObject {
    @Persisted(primaryKey: true) public var _id: String
    @Persisted public var origin: String
    @Persisted public var time: Date
    @Persisted public var temp: Double?
    @Persisted public var humidity: Double?
    @Persisted public var wind_direction: Double?
    @Persisted public var wind_speed: Double?
    @Persisted public var pressure: Double?
    /// `us` (°F, mph, inch) or `si`. The gateway's plugin converts all to SI.
    @Persisted public var units: String
    @Persisted public var source: String?
}

//===- Events.h - Every event, for observers that look at all -------------===//
#pragma once

#include "fp4/Sim/Events/ActivityEvent.h"
#include "fp4/Sim/Events/BarrierEvent.h"
#include "fp4/Sim/Events/FenceEvent.h"
#include "fp4/Sim/Events/LaunchEvent.h"
#include "fp4/Sim/Events/LifeEvent.h"
#include "fp4/Sim/Events/MemoryEvent.h"
#include "fp4/Sim/Events/TicketEvent.h"

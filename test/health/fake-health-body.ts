// The answers of the health API as tests read them.

export interface ModuleBody {
  status: string;
  message: string;
  updated_at: string;
  data: Record<string, unknown>;
}

export interface HealthBody {
  status: string;
  updated_at: string;
  modules: Record<string, ModuleBody>;
}
